"""The time that a round's matrix products alone take: OpenBLAS through NumPy, a single-threaded worker per core.

python sgemm_limit.py WORKERS LAYERS PASSES      (with OPENBLAS_NUM_THREADS=1)

LAYERS and PASSES are JSON, such as [784, 10] and [[10, true, 60]]; see `jobs.Pass`. The workers share the passes
evenly. Operands stay where they are, so that no candidate that reads its data can be as fast.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import jobs
import numpy as np
from candidate import Wire

Shape = tuple[int, int, int]


def product(shape: Shape) -> Callable[[], object]:
    """One matrix product, ready to be repeated."""
    m, k, n = shape
    rng = np.random.default_rng(0)
    left, right = rng.random((m, k), np.float32), rng.random((k, n), np.float32)
    out = np.empty((m, n), np.float32)
    return lambda: np.matmul(left, right, out=out)


def work(orders: Connection, layers: list[int], passes: list[jobs.Pass]) -> None:
    """A worker: its part of the products, each time that it is told to."""
    parts = [([product(shape) for shape in jobs.products(layers, one)], one.times) for one in passes]
    while orders.recv():
        for each, times in parts:
            for _ in range(times):
                for multiply in each:
                    multiply()
        orders.send(True)


def rates(layers: list[int], passes: list[jobs.Pass]) -> dict[str, float]:
    """10^9 operations a second of every shape, on one core."""
    found = {}
    for shape in sorted({shape for one in passes for shape in jobs.products(layers, one)}):
        multiply, operations = product(shape), 2e-9 * shape[0] * shape[1] * shape[2]
        times = max(5, int(0.5 / operations))
        start = time.perf_counter()
        for _ in range(times):
            multiply()
        found["x".join(map(str, shape))] = operations * times / (time.perf_counter() - start)
    return found


def main() -> None:
    """Rounds until the harness has enough."""
    wire, workers, layers = Wire(), int(sys.argv[1]), json.loads(sys.argv[2])
    passes = [jobs.Pass(*one) for one in json.loads(sys.argv[3])]
    ours = []
    for index in range(workers):
        mine = [one._replace(times=one.times // workers + (index < one.times % workers)) for one in passes]
        here, there = multiprocessing.Pipe()
        multiprocessing.Process(target=work, args=(there, layers, mine), daemon=True).start()
        ours.append(here)
    while True:
        for worker in ours:
            worker.send(True)
        for worker in ours:
            worker.recv()
        if not wire.turn():
            break
    for worker in ours:
        worker.send(False)
    rounds = jobs.gflop(layers, passes)
    wire.end(None, gflop_per_round=rounds, rates_gflop_s=rates(layers, passes))


if __name__ == "__main__":
    main()
