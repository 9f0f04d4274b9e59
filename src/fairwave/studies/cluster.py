"""The runs of a study on a Dask cluster: one task each, into a folder that all machines see."""

from __future__ import annotations

import concurrent.futures
import hashlib
import importlib.metadata
import importlib.util
import logging
import queue
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwave.engine.device_map import Execution
from fairwave.errors import ArgumentError, OutputError, StoreError
from fairwave.runs.order import Track
from fairwave.runs.session import TrackProgress, run
from fairwave.studies.jobs import Job, Watch

if TYPE_CHECKING:
    from distributed import Future

CONNECT_S = 10
TOPIC = "fairwave-rounds"
News = tuple[str, TrackProgress | None]
"""A job's name, and a round that it has done; None once its task has ended."""


def check_installed() -> None:
    """Raise, with the remedy, if Dask's scheduler is not there."""
    if importlib.util.find_spec("distributed") is None:
        raise ArgumentError(
            "--scheduler: Dask is not installed; install it with: pip install 'fairwave[cluster]', or leave the option "
            "out to run here"
        )


def installed_version() -> str:
    """The version of fairwave that is installed here."""
    return importlib.metadata.version("fairwave")


def run_on_cluster(
    jobs: Sequence[Job], folder: Path, command: str, scheduler: str, watch: Watch, tell: Callable[[str], None]
) -> None:
    """Run every job as a task of its own; what is finished is not repeated. `tell` is for a sentence to the user."""
    check_installed()
    from distributed import Client

    for name in ("distributed", "distributed.client"):  # we say in one line what it would say in a traceback
        logging.getLogger(name).setLevel(logging.CRITICAL)
    shared = folder.resolve()
    try:
        shared.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}); choose another --out") from None
    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"--scheduler {scheduler}: no scheduler answers there ({_first_line(error)}); start one with 'dask "
            "scheduler' and give the address that it prints"
        ) from None
    with client:
        news: queue.Queue[News] = queue.Queue()
        client.subscribe_topic(TOPIC, lambda event: _heard(event, shared, news))
        version = installed_version()
        tasks = {}
        for job in jobs:
            # The key stands for the work: whoever asks again meets the task that still runs, not a locked folder.
            key = _key(job, shared)
            tasks[job.name] = client.submit(_task, job, shared, command, version, key=key, pure=False)
            tasks[job.name].add_done_callback(lambda task, name=job.name: news.put((name, None)))
        if not client.nthreads():  # some clusters start workers for tasks that wait
            tell(f"no worker is there yet; waiting (dask worker {scheduler})")
        _listen(tasks, news, watch)


def _listen(tasks: dict[str, Future[list[TrackProgress]]], news: queue.Queue[News], watch: Watch) -> None:
    left = dict(tasks)
    seen: set[tuple[str, Track, int]] = set()
    while left:
        name, step = news.get()
        if name not in left:  # a late report: the task's own answer has said it
            continue
        for each in _outcome(name, left.pop(name)) if step is None else [step]:
            if (name, each.track, each.rounds) not in seen:
                seen.add((name, each.track, each.rounds))
                watch(name, each)


def _outcome(name: str, task: Future[list[TrackProgress]]) -> list[TrackProgress]:
    from distributed import KilledWorker

    try:
        steps: list[TrackProgress] = task.result()
    except KilledWorker:
        raise StoreError(
            f"{name}: the workers that had it ended one after the other, perhaps because memory ran out; run the "
            "same command again to resume, with fewer tasks for each worker"
        ) from None
    except concurrent.futures.CancelledError:
        raise StoreError(
            f"{name}: the scheduler has let go of it; see that it still runs, then run the same command again"
        ) from None
    except ModuleNotFoundError as error:
        raise ArgumentError(
            f"--scheduler: a worker cannot import {error.name}; install this version of fairwave on all of them"
        ) from None
    return steps


def _task(job: Job, folder: Path, command: str, version: str) -> list[TrackProgress]:
    """On a worker: the run, telling every round; the last step of every track."""
    from distributed import get_worker

    here = installed_version()
    if here != version:
        raise ArgumentError(
            f"--scheduler: {socket.gethostname()} has fairwave {here}, not {version}; install the same on all workers"
        )
    if not folder.is_dir():
        raise StoreError(
            f"{folder}: {socket.gethostname()} does not see it; give an --out on a file system that all workers share"
        )
    worker, last = get_worker(), {}

    def tell(step: TrackProgress) -> None:
        last[step.track] = step
        worker.log_event(TOPIC, (str(folder), job.name, *step.track, step.rounds, *_numbers(step)))

    # Dask says how many tasks a machine has at a time; a thread for each is what it counts on.
    run(job.order, folder / job.name, command, tell, execution=Execution(threads=1))
    return list(last.values())


def _numbers(step: TrackProgress) -> tuple[float, float, float, float | None]:
    return step.loss, step.test_accuracy, step.energy_std_j, step.test_rmse


def _heard(event: tuple[float, Any], folder: Path, news: queue.Queue[News]) -> None:
    """A round that a worker has reported; those of other sweeps on the cluster are not ours."""
    place, name, scheme, seed, rounds, *numbers = event[1]
    if place == str(folder):
        news.put((name, TrackProgress(Track(scheme, seed), rounds, *numbers)))


def _key(job: Job, folder: Path) -> str:
    order = job.order
    asked = repr((str(folder), order.scenario.model_dump_json(), order.schemes, order.seeds, order.rounds))
    return f"fairwave-{job.name}-{hashlib.blake2b(asked.encode(), digest_size=8).hexdigest()}"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
