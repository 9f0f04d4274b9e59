"""A model as an ONNX file, which runs without fairwave and without JAX.

The graph is built by hand, a few nodes for each kind of model, so that nothing but the package `onnx` is needed.
Converters from JAX bring dozens of packages, and trace code that was arranged for fast training on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fairwave.errors import ArgumentError, OutputError, system_reason
from fairwave.learning.named_arrays import NamedArrays
from fairwave.learning.onnx_graph import Graph
from fairwave.learning.onnx_networks import NETWORKS
from fairwave.scenario.learning_parameters import Learning

if TYPE_CHECKING:
    import onnx

ENDING = ".onnx"
OPSET, FORMAT = 20, 9
"""Version of the operators, the first that has GELU, and the format of files that came with it."""
INPUT = "inputs"
"""Name of the input: a row for each sample."""


def write_onnx(path: Path, learning: Learning, arrays: NamedArrays, metadata: Mapping[str, str]) -> None:
    """Write a model's graph with its parameters; models without one are refused."""
    content = onnx_model(learning, arrays, metadata).SerializeToString()
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({system_reason(error)}); choose a writable folder") from None


def onnx_model(learning: Learning, arrays: NamedArrays, metadata: Mapping[str, str]) -> onnx.ModelProto:
    """The model as ONNX: from samples by inputs to samples by logits, or to the numbers that it predicts."""
    if learning.model not in NETWORKS:
        raise ArgumentError(
            f"model '{learning.model}': cannot be written as ONNX, which knows {', '.join(NETWORKS)}; write "
            ".safetensors or .npz"
        )
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError:
        raise ArgumentError("ONNX: needs the package onnx; install it with: pip install 'fairwave[onnx]'") from None
    graph = Graph()
    NETWORKS[learning.model](graph, learning, arrays, INPUT)
    name, outputs = ("numbers", 1) if learning.model == "regression" else ("logits", learning.layer_sizes[-1])
    graph.nodes[-1].output[0] = name
    described = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "fairwave",
            [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["sample", learning.layer_sizes[0]])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["sample", outputs])],
            graph.parameters,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=FORMAT,
        producer_name="fairwave",
        producer_version=metadata.get("fairwave", ""),
    )
    helper.set_model_props(described, dict(metadata))
    onnx.checker.check_model(described, full_check=True)
    return described
