"""The jobs' network and local training in PyTorch, as its tutorials write them; for all candidates that use PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import jobs
import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy


def network(job: jobs.Job) -> nn.Sequential:
    """Dense layers with ReLU between them, with the job's first weights."""
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(job.layers):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    put(model, [part.T for layer in job.weights() for part in layer])
    return model


def put(model: nn.Module, arrays: Iterable[np.ndarray | torch.Tensor]) -> None:
    """Copy arrays into the parameters."""
    with torch.no_grad():
        for own, array in zip(model.parameters(), arrays, strict=True):
            own.copy_(torch.as_tensor(array))


def train(
    model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, picks: torch.Tensor, learning_rate: float
) -> None:
    """One client's steps, in place."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    for batch in picks:
        optimizer.zero_grad()
        cross_entropy(model(inputs[batch]), labels[batch]).backward()
        optimizer.step()


def shares(job: jobs.Job) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and labels of every client."""
    return [(torch.from_numpy(inputs), torch.from_numpy(labels)) for inputs, labels in jobs.shares(job)]


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    """Share of test samples whose most likely class is the right one."""
    data = jobs.mnist()
    return float(np.mean(model(torch.from_numpy(data.test_x)).argmax(1).numpy() == data.test_y))
