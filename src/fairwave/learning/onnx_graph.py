"""The nodes of an ONNX graph, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
    "elu": ("Elu", {"alpha": 1.0}),
    "gelu": ("Gelu", {"approximate": "tanh"}),  # the form that jax.nn.gelu computes
}


class Graph:
    """Nodes and parameters, in the order in which they were added. Every method returns the name of its result."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.parameters: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """One node."""
        from onnx import helper

        name = f"value_{len(self.nodes) + 1}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        """A parameter, or another array that the graph holds."""
        from onnx import numpy_helper

        self.parameters.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def shape(self, value: str, *sizes: int) -> str:
        """A value in another shape; 0 keeps a size, and one may be -1."""
        name = f"shape_{len(self.parameters)}"
        return self.add("Reshape", value, self.constant(name, np.asarray(sizes, np.int64)))

    def dense(self, value: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """An affine map of every sample."""
        return self.add("Gemm", value, self.constant(f"{name}.weight", weight), self.constant(f"{name}.bias", bias))

    def convolution(self, value: str, name: str, kernel: np.ndarray, bias: np.ndarray, **attributes: Any) -> str:
        """A convolution; the kernel has channels out, channels in, and then its sides."""
        parameters = self.constant(f"{name}.weight", kernel), self.constant(f"{name}.bias", bias)
        return self.add("Conv", value, *parameters, kernel_shape=list(kernel.shape[2:]), **attributes)

    def activated(self, value: str, activation: str) -> str:
        """What hidden layers apply."""
        operator, attributes = _ACTIVATIONS[activation]
        return self.add(operator, value, **attributes)
