"""The networks that can be written as ONNX graphs, each as its nodes.

Images come as rows of height, width and colours, as fairwave has them; ONNX convolves colours first.
"""

from __future__ import annotations

from collections.abc import Callable

import jax

from fairwave.learning.named_arrays import NamedArrays
from fairwave.learning.onnx_graph import Graph
from fairwave.learning.pooled_convolution import PADDING, STRIDE
from fairwave.learning.series_convolution import FIRST, SECOND
from fairwave.scenario.learning_parameters import Learning

AddNetwork = Callable[[Graph, Learning, NamedArrays, str], str]
"""Adds a network to a graph, from the name of its input to that of its output."""


def _dense(graph: Graph, learning: Learning, arrays: NamedArrays, value: str) -> str:
    count = len(learning.layer_sizes) - 1
    for layer in range(count):
        value = _dense_layer(graph, arrays, str(layer), value)
        if layer < count - 1:
            value = graph.activated(value, learning.activation)
    return value


def _strided(graph: Graph, learning: Learning, arrays: NamedArrays, value: str) -> str:
    height, width, colours = _image_shape(learning)
    value = graph.add("Transpose", graph.shape(value, -1, height, width, colours), perm=[0, 3, 1, 2])
    for name in ("first", "second"):
        rows, columns = jax.lax.padtype_to_pads((height, width), (3, 3), (2, 2), "SAME")
        pads = [rows[0], columns[0], rows[1], columns[1]]
        value = graph.activated(_convolved(graph, arrays, name, value, 2, pads), learning.activation)
        height, width = -(-height // 2), -(-width // 2)
    return _dense_layer(graph, arrays, "last", _flat(graph, value))


def _pooled(graph: Graph, learning: Learning, arrays: NamedArrays, value: str) -> str:
    value = graph.add("Transpose", graph.shape(value, -1, *_image_shape(learning)), perm=[0, 3, 1, 2])
    for name, padding in (("first", PADDING), ("second", 0)):
        value = graph.activated(_convolved(graph, arrays, name, value, STRIDE, [padding] * 4), learning.activation)
        value = graph.add("MaxPool", value, kernel_shape=[2, 2], strides=[1, 1])
    hidden = graph.activated(_dense_layer(graph, arrays, "hidden", _flat(graph, value)), learning.activation)
    return _dense_layer(graph, arrays, "last", hidden)


def _series(graph: Graph, learning: Learning, arrays: NamedArrays, value: str) -> str:
    samples, _, measurements = _image_shape(learning)
    value = graph.add("Transpose", graph.shape(value, -1, samples, measurements), perm=[0, 2, 1])
    for name, (width, step) in (("first", FIRST), ("second", SECOND)):
        weight = arrays[f"{name}.weight"]
        kernel = weight.reshape(width, -1, weight.shape[1]).transpose(2, 1, 0)
        value = graph.convolution(value, name, kernel, arrays[f"{name}.bias"], strides=[step])
        value = graph.activated(value, learning.activation)
    mean = graph.shape(graph.add("GlobalAveragePool", value), 0, -1)
    return _dense_layer(graph, arrays, "last", mean)


NETWORKS: dict[str, AddNetwork] = {
    "mlp": _dense,
    "softmax": _dense,
    "regression": _dense,
    "cnn": _strided,
    "pooled_cnn": _pooled,
    "series_cnn": _series,
}
"""By the name of the kind of model."""


def _image_shape(learning: Learning) -> tuple[int, int, int]:
    assert learning.image_shape is not None, "checked by the model's kind"
    return learning.image_shape


def _dense_layer(graph: Graph, arrays: NamedArrays, name: str, value: str) -> str:
    return graph.dense(value, name, arrays[f"{name}.weight"], arrays[f"{name}.bias"])


def _convolved(graph: Graph, arrays: NamedArrays, name: str, value: str, stride: int, pads: list[int]) -> str:
    kernel = arrays[f"{name}.weight"].transpose(3, 2, 0, 1)
    return graph.convolution(value, name, kernel, arrays[f"{name}.bias"], strides=[stride, stride], pads=pads)


def _flat(graph: Graph, value: str) -> str:
    """Every sample's values in a row, colours last."""
    return graph.shape(graph.add("Transpose", value, perm=[0, 2, 3, 1]), 0, -1)
