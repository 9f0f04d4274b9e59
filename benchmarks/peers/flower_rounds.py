"""Flower's simulation with Ray and PyTorch: an actor per core, each with one thread, which is the fastest way found.

python flower_rounds.py JOB ACTORS

The ServerApp waits for the harness between rounds. It sends its messages itself: no strategy samples or logs.
"""

from __future__ import annotations

import sys
import time

import flower_client
import jobs
import numpy as np
from candidate import Wire
from flower_client import arrays_of, record_of
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation


def server_app(wire: Wire, job: jobs.Job) -> ServerApp:
    """Federated averaging, a round each time the harness asks for one."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        nodes = all_nodes(grid, job.clients)
        shared, rng, number = [part for layer in job.weights() for part in layer], job.rng(2), 0
        while True:
            config = ConfigRecord({"job": job.name, "round": number})
            content = RecordDict({"arrays": record_of([part.T for part in shared]), "config": config})
            messages = [Message(content, nodes[client], "train") for client in job.chosen(rng)]
            trained = [arrays_of(reply) for reply in grid.send_and_receive(messages)]
            shared = [np.mean(parts, axis=0).T for parts in zip(*trained, strict=True)]
            number += 1
            if not wire.turn():
                break
        wire.end(jobs.accuracy(list(zip(shared[::2], shared[1::2], strict=True))))

    return app


def all_nodes(grid: Grid, count: int) -> list[int]:
    """Ids of all clients, once they have registered."""
    while len(nodes := sorted(grid.get_node_ids())) < count:
        time.sleep(0.01)
    return nodes


def main() -> None:
    """Rounds until the harness has enough."""
    wire, job, actors = Wire(), jobs.ALL[sys.argv[1]], int(sys.argv[2])
    backend = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": actors}}
    run_simulation(server_app(wire, job), flower_client.app, job.clients, backend_config=backend)


if __name__ == "__main__":
    main()
