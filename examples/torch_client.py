"""A device in PyTorch, beside devices of fairwave: the access point asks for one array and a few values, no more.

    pip install "fairwave[flower]" torch==2.13.0
    python examples/torch_client.py

Device 0 of three is written in PyTorch and does not use fairwave; the others are fairwave's own. Here they meet in one
process; on a network, `app_of_torch` is what `client_app.py` of the app folder would return.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from math import prod
from pathlib import Path

import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from torch.nn.functional import cross_entropy

VERSION = 4
LAYERS = (784, 128, 64, 10)
LAYOUT = {
    f"{layer}.{name}": shape
    for layer, (inputs, outputs) in enumerate(pairwise(LAYERS))
    for name, shape in (("bias", (outputs,)), ("weight", (inputs, outputs)))
}
"""Names and shapes in the order in which their values follow each other on the wire."""
ITERATIONS, BATCH, LEARNING_RATE, GRADIENT_WEIGHT = 80, 128, 0.01, 0.01


class TorchDevice:
    """A network of dense layers, trained on the samples that the device holds."""

    def __init__(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        self.inputs, self.labels = inputs, labels
        self.copy: dict[str, torch.Tensor] = {}
        self.gradient: dict[str, torch.Tensor] = {}

    def loss(self, params: dict[str, torch.Tensor], inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean cross entropy; weights are named 0.weight, 0.bias, 1.weight, ... and outputs are the last axis."""
        layers = len(params) // 2
        for layer in range(layers):
            inputs = inputs @ params[f"{layer}.weight"] + params[f"{layer}.bias"]
            inputs = torch.relu(inputs) if layer < layers - 1 else inputs
        return cross_entropy(inputs, labels)

    def gradient_at(
        self, params: dict[str, torch.Tensor], inputs: torch.Tensor, labels: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        """Of the mean loss."""
        leaves = {name: value.detach().requires_grad_() for name, value in params.items()}
        slopes = torch.autograd.grad(self.loss(leaves, inputs, labels), list(leaves.values()))
        return dict(zip(leaves, slopes, strict=True))

    def train(self, mean_gradient: dict[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
        """The update: how training moved the copy, with the correction that the exchanged gradients make."""
        params = dict(self.copy)
        for _ in range(ITERATIONS):
            picks = torch.randint(len(self.labels), (BATCH,))
            slopes = self.gradient_at(params, self.inputs[picks], self.labels[picks])
            for name, slope in slopes.items():
                pull = 0.0 if mean_gradient is None else self.gradient[name] - GRADIENT_WEIGHT * mean_gradient[name]
                params[name] = params[name] - LEARNING_RATE * (slope - pull)
        return {name: params[name] - self.copy[name] for name in params}


def app_of_torch(device: TorchDevice) -> ClientApp:
    """The Flower side: it says who it is, and answers the two exchanges of a round."""
    app = ClientApp()

    @app.query("hello")
    def hello(message: Message, context: Context) -> Message:
        who = {"version": VERSION, "partition-id": int(context.node_config["partition-id"]), "signature": b""}
        return Message(RecordDict({"fairwave.hello": ConfigRecord(who)}), reply_to=message)

    @app.train("gradient")
    def gradient(message: Message, context: Context) -> Message:
        device.copy = _tensors(message, "copy")
        device.gradient = device.gradient_at(device.copy, device.inputs, device.labels)
        return _answer(message, device, device.gradient)

    @app.train("update")
    def update(message: Message, context: Context) -> Message:
        if "copy" in message.content:  # gradients are not exchanged
            device.copy = _tensors(message, "copy")
        mean = _tensors(message, "mean-gradient") if "mean-gradient" in message.content else None
        return _answer(message, device, device.train(mean))

    return app


def _tensors(message: Message, record: str) -> dict[str, torch.Tensor]:
    parts = torch.from_numpy(message.content[record]["flat"].numpy()).split([prod(shape) for shape in LAYOUT.values()])
    return {name: part.reshape(shape) for (name, shape), part in zip(LAYOUT.items(), parts, strict=True)}


def _answer(message: Message, device: TorchDevice, arrays: dict[str, torch.Tensor]) -> Message:
    values = {
        "version": VERSION,
        "round": message.content["fairwave.task"]["round"],
        "status": "sent",
        "num-examples": len(device.labels),
        "spent": 0,
        "state-name": 0,
        "exhausted": 0,
        "reported-noise-std": 0.0,
        "reported-loss": float("nan"),
        "gradients": 0,
        "reason": "none",
    }
    flat = torch.cat([arrays[name].ravel() for name in LAYOUT]).numpy()
    records = {"fairwave.answer": ConfigRecord(values), "arrays": ArrayRecord({"flat": Array(flat)})}
    return Message(RecordDict(records), reply_to=message)


def main() -> None:
    """Three devices, one of them in PyTorch, five rounds on MNIST."""
    from fairwave.data.sources import load
    from fairwave.federate.agreement import Agreement
    from fairwave.federate.client_app import app_of
    from fairwave.federate.in_process import federate_in_process
    from fairwave.federate.settings import Settings
    from fairwave.runs.order import Order
    from fairwave.scenario.loading import load_scenario

    data = load("mnist")
    scenario = load_scenario("small", ["cell.num_devices=3"])
    own = slice(0, scenario.data.samples_per_device)
    inputs = torch.from_numpy(data.train_inputs[own]).float().flatten(1) / 255.0
    torch_app = app_of_torch(TorchDevice(inputs, torch.from_numpy(data.train_labels[own]).long()))
    agreement = Agreement(Order(scenario, ("proposed",), (0,), 5), Settings(telemetry=True, energy="model"))
    with tempfile.TemporaryDirectory() as folder:
        own_app = app_of(lambda: agreement, Path(folder) / "devices")

        class Both(ClientApp):
            def __call__(self, message: Message, context: Context) -> Message:
                return (torch_app if context.node_config["partition-id"] == 0 else own_app)(message, context)

        federate_in_process(agreement, Path(folder) / "run", app=Both(), on_line=_say)


def _say(line: dict[str, object]) -> None:
    if line["event"] == "round":
        print(f"round {line['round']}: {line['delivered']} updates, test accuracy {line['test_accuracy']:.3f}")


if __name__ == "__main__":
    main()
