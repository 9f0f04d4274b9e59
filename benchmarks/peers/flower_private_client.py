"""A client of the paper's experiment in Flower: its full gradient, then corrected local training and a noisy update."""

from __future__ import annotations

import functools

import jobs
import numpy as np
import torch
from flower_client import arrays_of, record_of
from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from torch import nn
from torch.nn.functional import cross_entropy
from torch_model import network, put

LEARNING = jobs.PAPER
app = ClientApp()


@functools.cache
def standing_model() -> nn.Module:
    """The network that an actor makes once, and keeps."""
    torch.set_num_threads(1)
    return network(LEARNING)


@functools.cache
def own_samples(device: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One client's inputs and labels, made once in each actor."""
    data, own = jobs.mnist(), LEARNING.holdings()[device]
    return torch.from_numpy(data.train_x[own]), torch.from_numpy(data.train_y[own])


@app.train("gradient")
def gradient(message: Message, context: Context) -> Message:
    """Loss of the received copy over all the client's data, and its gradient."""
    model, inputs, labels, _ = _ready(message)
    model.zero_grad()
    loss = cross_entropy(model(inputs), labels)
    loss.backward()
    return _answer(message, [param.grad.numpy() for param in model.parameters()], loss.item())


@app.train("update")
def update(message: Message, context: Context) -> Message:
    """How the corrected local problem moves the copy, with noise, and the loss after training."""
    model, inputs, labels, config = _ready(message)
    correction = [torch.from_numpy(array) for array in arrays_of(message, "correction")]
    rng = LEARNING.rng(int(config["round"]), int(config["device"]))
    picks = torch.from_numpy(rng.integers(0, LEARNING.held, (int(config["iterations"]), LEARNING.batch)))
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING.learning_rate)
    for batch in picks:
        optimizer.zero_grad()
        cross_entropy(model(inputs[batch]), labels[batch]).backward()
        for param, bracket in zip(model.parameters(), correction, strict=True):
            param.grad.sub_(bracket)
        optimizer.step()
    with torch.no_grad():
        loss = float(cross_entropy(model(inputs), labels))
    std, moved = float(config["update-std"]), []
    for param, first in zip(model.parameters(), arrays_of(message, "copy"), strict=True):
        moved.append(param.detach().numpy() - first + np.float32(std) * rng.standard_normal(first.shape, np.float32))
    return _answer(message, moved, loss)


def _ready(message: Message) -> tuple[nn.Module, torch.Tensor, torch.Tensor, ConfigRecord]:
    """The received copy, the client's samples, and what it is told."""
    model, config = standing_model(), message.content["config"]
    put(model, arrays_of(message, "copy"))
    return model, *own_samples(int(config["device"])), config


def _answer(message: Message, arrays: list[np.ndarray], loss: float) -> Message:
    content = {"arrays": record_of(arrays), "metrics": MetricRecord({"loss": loss})}
    return Message(RecordDict(content), reply_to=message)
