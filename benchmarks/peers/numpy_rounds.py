"""Plain NumPy with hand-written gradients: a thread per core for the paper's round, one thread for tiny clients.

python numpy_rounds.py JOB THREADS      (with OPENBLAS_NUM_THREADS=1)
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import jobs
import numpy as np
from candidate import Wire


def train(job: jobs.Job, first: jobs.Weights, inputs: np.ndarray, labels: np.ndarray, picks: np.ndarray) -> list:
    """The weights after one client's steps."""
    weights = [[weight.copy(), bias.copy()] for weight, bias in first]
    rows, rate = np.arange(job.batch), np.float32(job.learning_rate)
    for batch in picks:
        seen = [inputs[batch]]
        for index, (weight, bias) in enumerate(weights):
            out = seen[-1] @ weight
            out += bias
            if index < len(weights) - 1:
                np.maximum(out, 0.0, out=out)
            seen.append(out)
        slope = seen.pop()
        slope -= slope.max(axis=1, keepdims=True)
        np.exp(slope, out=slope)
        slope /= slope.sum(axis=1, keepdims=True)
        slope[rows, labels[batch]] -= 1.0
        slope *= rate / job.batch
        for index in range(len(weights) - 1, -1, -1):
            weight, bias = weights[index]
            below = (slope @ weight.T) * (seen[index] > 0.0) if index else None
            weight -= seen[index].T @ slope
            bias -= slope.sum(axis=0)
            slope = below
    return weights


def main() -> None:
    """Rounds until the harness has enough."""
    wire, job, threads = Wire(), jobs.ALL[sys.argv[1]], int(sys.argv[2])
    own, weights, rng = jobs.shares(job), job.weights(), job.rng(2)
    with ThreadPoolExecutor(threads) as pool:
        each = map if threads == 1 else pool.map
        while True:
            tasks = [(client, job.picks(rng)) for client in job.chosen(rng)]
            trained = list(each(lambda task, now=weights: train(job, now, *own[task[0]], task[1]), tasks))
            # Of weights of the same first model, the mean is that model moved by the mean update.
            weights = [
                tuple(np.mean(part, axis=0) for part in zip(*layer, strict=True))
                for layer in zip(*trained, strict=True)
            ]
            if not wire.turn():
                break
    wire.end(jobs.accuracy(weights))


if __name__ == "__main__":
    main()
