"""Many runs into one folder, on several processes, each going on where it stopped."""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from fairwave.engine.device_map import Execution
from fairwave.errors import ArgumentError, FairwaveError, StoreError
from fairwave.runs.order import Order
from fairwave.runs.session import TrackProgress, run

Watch = Callable[[str, TrackProgress], None]
"""Called with a job's name and its latest progress."""
LISTEN_S = 1.0


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a study."""

    name: str
    order: Order


def run_all(jobs: Sequence[Job], folder: Path, command: str, workers: int, watch: Watch) -> None:
    """Run every job into its own folder below one; what is finished is not repeated."""
    if workers < 1:
        raise ArgumentError(f"--jobs {workers}: at least one is needed; leave it out for one per core")
    if workers == 1 or len(jobs) == 1:
        for job in jobs:
            run(job.order, folder / job.name, command, functools.partial(watch, job.name))
        return
    _in_processes(jobs, folder, command, min(workers, len(jobs)), watch)


def _in_processes(jobs: Sequence[Job], folder: Path, command: str, workers: int, watch: Watch) -> None:
    # JAX is full of threads, which a fork would not survive.
    context = multiprocessing.get_context("spawn")
    waiting: Any = context.Queue()
    reports: Any = context.Queue()
    for job in jobs:
        waiting.put(job)
    for _ in range(workers):
        waiting.put(None)
    execution = Execution(threads=max(1, (os.cpu_count() or 1) // workers))
    crew = [
        context.Process(target=_work, args=(waiting, reports, folder, command, execution), daemon=True)
        for _ in range(workers)
    ]
    for worker in crew:
        worker.start()
    try:
        _listen(crew, reports, len(jobs), watch)
    finally:
        for worker in crew:  # what is stored is whole; the few quick rounds that still waited are computed again
            worker.kill()
        for worker in crew:
            worker.join()


def _listen(crew: Sequence[BaseProcess], reports: Any, left: int, watch: Watch) -> None:
    while left:
        try:
            name, news = reports.get(timeout=LISTEN_S)
        except queue.Empty:
            fallen = [worker for worker in crew if worker.exitcode not in (None, 0)]
            if fallen:
                raise StoreError(
                    f"a worker process ended with code {fallen[0].exitcode}, perhaps because memory ran out; run the "
                    "same command again to resume, with fewer --jobs"
                ) from None
            continue
        if isinstance(news, Exception):
            raise news
        if news is None:
            left -= 1
        else:
            watch(name, news)


def _work(waiting: Any, reports: Any, folder: Path, command: str, execution: Execution) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started this process ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while (job := waiting.get()) is not None:
        try:
            report = functools.partial(_report, reports, job.name)
            run(job.order, folder / job.name, command, report, execution=execution)
            reports.put((job.name, None))
        except FairwaveError as error:
            reports.put((job.name, error))
            return
        except Exception:  # a bug: its traceback is for whoever reads the terminal
            reports.put((job.name, RuntimeError(traceback.format_exc())))
            return


def _end_with_parent() -> None:
    """A study that was killed leaves nobody behind who holds its folders."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _report(reports: Any, name: str, step: TrackProgress) -> None:
    reports.put((name, step))
