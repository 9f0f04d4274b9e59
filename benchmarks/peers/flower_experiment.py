"""The paper's experiment as one would write it in Flower's simulation with PyTorch, from a cold process to its results.

python flower_experiment.py PLANS ACTORS

PLANS is a JSON that `fairwave_rounds.py plans` exports: the first model and, by scheme, each device's number of local
iterations and the noise of its copy in each round, and who delivered. Nothing is planned here, no channel is drawn,
nothing is stored, and neither copies nor a membership attack are tried: less work than fairwave's. The results are
printed as one JSON line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import flower_private_client
import jobs
import numpy as np
import torch
from candidate import Wire, peak_mb
from flower_client import arrays_of, record_of
from flower_private_client import LEARNING
from flower_rounds import all_nodes
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation
from torch.nn.functional import cross_entropy
from torch_model import network, put

Arrays = list[np.ndarray]
CHUNK = 1_000


class AccessPoint:
    """The server's side of one scheme."""

    def __init__(self, grid: Grid, nodes: list[int], first: Arrays, plan: dict[str, Any]) -> None:
        self.grid, self.nodes, self.plan = grid, nodes, plan
        self.model, self.shared = network(LEARNING), first
        self.copies: list[Arrays] = [self.shared for _ in nodes]
        self.rng = np.random.default_rng(0)
        self.results: list[dict[str, Any]] = []

    def round(self, number: int) -> None:
        """Gradients, their mean, local training, the new model, noisy copies of it, and how good it is."""
        arrived = [k for k, sent in enumerate(self.plan["delivered"][number]) if sent]
        gradients = self._ask("gradient", [{"copy": record_of(copy)} for copy in self.copies], number)
        mean = mean_of([gradients[k] for k in arrived]) if arrived else None
        tasks = [
            {"copy": record_of(copy), "correction": record_of(plus(gradient, gradient if mean is None else mean, -1.0))}
            for copy, gradient in zip(self.copies, gradients, strict=True)
        ]
        updates = self._ask("update", tasks, number)
        if arrived:
            self.shared = plus(self.shared, mean_of([updates[k] for k in arrived]))
        stds = self.plan["noise_std"][number]
        self.copies = [
            [part + std * self.rng.standard_normal(part.shape, np.float32) for part in self.shared] for std in stds
        ]
        self.results.append(self._judged(updates))

    def _ask(self, what: str, contents: list[dict[str, ArrayRecord]], number: int) -> list[Arrays]:
        told = {"round": number, "update-std": self.plan["update_std"]}
        messages = []
        for k, (node, records) in enumerate(zip(self.nodes, contents, strict=True)):
            config = ConfigRecord(told | {"device": k, "iterations": int(self.plan["local_iterations"][number][k])})
            messages.append(Message(RecordDict({**records, "config": config}), node, f"train.{what}"))
        order = {node: k for k, node in enumerate(self.nodes)}
        replies = sorted(self.grid.send_and_receive(messages), key=lambda reply: order[reply.metadata.src_node_id])
        self.losses = [float(reply.content["metrics"]["loss"]) for reply in replies if not reply.has_error()]
        return [arrays_of(reply) for reply in replies]

    @torch.no_grad()
    def _judged(self, updates: list[Arrays]) -> dict[str, Any]:
        flat = np.stack([np.concatenate([part.ravel() for part in update]) for update in updates])
        mean = flat.mean(axis=0)
        cosine = flat @ mean / (np.linalg.norm(flat, axis=1) * np.linalg.norm(mean))
        put(self.model, self.shared)
        data = jobs.mnist()
        train_x, test_x = torch.from_numpy(data.train_x), torch.from_numpy(data.test_x)
        total = 0.0
        for inputs, labels in zip(train_x.split(CHUNK), torch.from_numpy(data.train_y).split(CHUNK), strict=True):
            total += float(cross_entropy(self.model(inputs), labels, reduction="sum"))
        right = self.model(test_x).argmax(1).numpy() == data.test_y
        return {
            "test_accuracy": float(right.mean()),
            "global_loss": total / len(data.train_y),
            "loss": self.losses,
            "deviation": (1.0 - cosine).tolist(),
        }


def mean_of(vectors: list[Arrays]) -> Arrays:
    """Of models or updates, part by part."""
    return [np.mean(parts, axis=0) for parts in zip(*vectors, strict=True)]


def plus(left: Arrays, right: Arrays, scale: float = 1.0) -> Arrays:
    """One model moved by a multiple of another."""
    return [part + np.float32(scale) * other for part, other in zip(left, right, strict=True)]


def server_app(wire: Wire, plans: dict[str, Any]) -> ServerApp:
    """All schemes, one after the other."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        nodes, results = all_nodes(grid, LEARNING.clients), {}
        first = [np.asarray(part, np.float32).T for part in plans["weights"]]
        for scheme, plan in plans["schemes"].items():
            point = AccessPoint(grid, nodes, first, plan)
            for number in range(len(plan["local_iterations"])):
                point.round(number)
            results[scheme] = point.results
        wire.say(results=results, peak_mb=peak_mb())

    return app


def main() -> None:
    """The whole experiment."""
    wire, plans, actors = Wire(), json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2])
    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": actors}}
    run_simulation(server_app(wire, plans), flower_private_client.app, LEARNING.clients, backend_config=backend)


if __name__ == "__main__":
    main()
