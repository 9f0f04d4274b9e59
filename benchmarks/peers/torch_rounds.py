"""A plain PyTorch loop over clients.

python torch_rounds.py JOB THREADS
"""

from __future__ import annotations

import sys

import jobs
import torch
from candidate import Wire
from torch_model import accuracy, network, put, shares, train


def main() -> None:
    """Rounds until the harness has enough."""
    wire, job = Wire(), jobs.ALL[sys.argv[1]]
    torch.set_num_threads(int(sys.argv[2]))
    own, model, rng = shares(job), network(job), job.rng(2)
    shared = [param.detach().clone() for param in model.parameters()]
    while True:
        total = [torch.zeros_like(param) for param in shared]
        for client in job.chosen(rng):
            put(model, shared)
            train(model, *own[client], torch.from_numpy(job.picks(rng)), job.learning_rate)
            for so_far, param in zip(total, model.parameters(), strict=True):
                so_far.add_(param.detach())
        shared = [so_far / job.cohort for so_far in total]
        if not wire.turn():
            break
    put(model, shared)
    wire.end(accuracy(model))


if __name__ == "__main__":
    main()
