"""A sweep's runs as tasks of a real Dask scheduler and worker, on this machine's loopback."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from fairwave.engine.device_map import Execution
from fairwave.errors import ArgumentError, FairwaveError, StoreError
from fairwave.runs.database import FILE, locked
from fairwave.runs.order import Order
from fairwave.runs.session import results, run
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario
from fairwave.studies import cluster
from fairwave.studies.jobs import Job
from tests.builders import SOFTMAX_MNIST

POWERS = (0.5, 1.0)
LONGEST_S = 120.0


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address=None
    ) as local:
        yield local.scheduler_address


def jobs(rounds: int = 2) -> list[Job]:
    return [
        Job(
            f"power-{power:g}",
            Order(
                load_scenario("small", [*SOFTMAX_MNIST, f"radio.max_transmit_power_w={power}"]),
                ("max_power",),
                (0,),
                rounds,
            ),
        )
        for power in POWERS
    ]


def within_bounds(work: Callable[[], None]) -> None:
    """A cluster that hangs fails its test, instead of stopping all of them."""
    pool = ThreadPoolExecutor(1)
    begun: Future[None] = pool.submit(work)
    pool.shutdown(wait=False)
    begun.result(timeout=LONGEST_S)


def test_runs_end_up_in_the_folder_and_rounds_are_told(scheduler: str, tmp_path: Path):
    told: dict[tuple[str, str, int], int] = {}
    said: list[str] = []

    def go(rounds: int) -> None:
        cluster.run_on_cluster(
            jobs(rounds),
            tmp_path,
            "here",
            scheduler,
            lambda name, step: told.update({(name, *step.track): step.rounds}),
            said.append,
        )

    within_bounds(lambda: go(2))
    assert told == {(f"power-{power:g}", "max_power", 0): 2 for power in POWERS}
    run(jobs()[0].order, tmp_path / "alone", "here", execution=Execution(threads=1))
    alone, ours = RunStore(tmp_path / "alone"), RunStore(tmp_path / "power-0.5")
    assert results(ours).drop_attrs().identical(results(alone).drop_attrs())
    alone.close()
    ours.close()
    before = {path: path.read_bytes() for path in tmp_path.glob(f"power-*/{FILE}")}
    within_bounds(lambda: go(2))  # nothing is repeated
    assert len(before) == 2 and all(path.read_bytes() == content for path, content in before.items())
    within_bounds(lambda: go(3))  # and more can be asked for
    assert set(told.values()) == {3} and not said  # a worker was there


def test_what_goes_wrong_on_a_worker_is_said_here(scheduler: str, tmp_path: Path, monkeypatch):
    (job, *_) = jobs()

    def refusal(folder: Path) -> FairwaveError:
        with pytest.raises(FairwaveError) as caught:
            within_bounds(lambda: cluster.run_on_cluster([job], folder, "", scheduler, lambda name, step: None, print))
        return caught.value

    (tmp_path / job.name).mkdir()
    with locked(tmp_path / job.name):
        error = refusal(tmp_path)
    assert isinstance(error, StoreError) and "another fairwave is running it" in str(error)
    versions = iter(["0.0", "0.1"])  # the client asks first
    monkeypatch.setattr(cluster, "installed_version", lambda: next(versions))
    assert "has fairwave 0.1, not 0.0; install the same on all workers" in str(refusal(tmp_path / "other"))


def test_no_scheduler_and_no_dask(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(ArgumentError, match=f"--scheduler {address}: no scheduler answers there"):
            cluster.run_on_cluster(jobs(), tmp_path, "", address, lambda name, step: None, print)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"pip install 'fairwave\[cluster\]'"):
        cluster.check_installed()
