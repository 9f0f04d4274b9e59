"""What `fairwave run --dry-run` estimates, beside what a run takes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fairwave as package
from fairwave.metrics.fairness import fairness_summary
from fairwave.runs.order import Order
from fairwave.studies.forecast import Forecast, Pace, SchemeForecast, forecast
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import fairwave

TIME_WITHIN, MEMORY_WITHIN, ENERGY_WITHIN = 4.0, 2.0, 1.05
"""Factors by which estimates may differ from what a run takes; times on a machine that others use too."""


def close(estimate: float, real: float, factor: float) -> bool:
    return real / factor <= estimate <= real * factor


def test_energies_are_those_of_a_run():
    scenario = package.load_scenario("small", SOFTMAX_MNIST)
    order = Order.checked(scenario, ["proposed", "max_power"], [0], 6)
    found = forecast(order)
    done = package.simulate(scenario, ["proposed", "max_power"], rounds=6).results
    for each in found.schemes:
        energy_j = done["energy_j"].sel(scheme=each.scheme, seed=0)
        real = fairness_summary(energy_j.mean("round").values)
        assert close(each.energy_j, real["mean"], ENERGY_WITHIN)
        assert abs(each.energy_std_j - real["std"]) < 0.05 * real["mean"]
        assert close(each.total_j, float(energy_j.sum()), ENERGY_WITHIN)
        assert close(each.iterations, float(done["local_iterations"].sel(scheme=each.scheme).mean()), ENERGY_WITHIN)
    assert found.warnings and found.pace is not None and found.pace.next_s > 0.0


def test_time_is_rounds_by_their_iterations_and_compiling_once():
    order = Order(package.load_scenario("small"), ("a", "b"), (0, 1), 10)
    schemes = tuple(SchemeForecast(name, many, 0.0, 0.0, 0.0) for name, many in (("a", 50.0), ("b", 100.0)))
    known = Forecast(order, schemes, 1e9, 8e9, Pace(7.0, 2.0), ())
    assert known.seconds == pytest.approx(5.0 + 20 * 2.0 + 20 * 4.0)
    assert dataclasses.replace(known, pace=None).seconds is None


def test_nothing_is_stored(tmp_path: Path, capsys, monkeypatch):
    folder = tmp_path / "run"
    asked = (*as_options(SOFTMAX_MNIST), "--rounds", "3", "--schemes", "max_power", "--out", str(folder))
    said = fairwave(capsys, monkeypatch, "run", "small", *asked, "--dry-run")
    assert said.code == 0 and not folder.exists() and not (tmp_path / "runs").exists()
    assert "1 scheme, 1 seed, 3 rounds each; nothing was stored." in said.out
    assert "time:   about" in said.out and "memory: about" in said.out and "max_power" in said.out
    assert "warning: radio.payload_bits" in said.err
    monkeypatch.setattr("fairwave.studies.forecast.machine_bytes", lambda: 1.0)
    said = fairwave(capsys, monkeypatch, "run", "small", *asked, "--dry-run")
    assert "time:   unknown: a round does not fit into the memory of this machine" in said.out


ESTIMATE = """
import fairwave
from fairwave.runs.order import Order
from fairwave.studies.forecast import forecast
found = forecast(Order.checked(fairwave.load_scenario("small"), ["proposed", "max_power"], [0], 20))
print(found.seconds, found.memory_bytes)
"""
RUN = """
import resource, sys
from fairwave.cli.main import main
sys.argv = ["fairwave", "run", "small", "--rounds", "20"]
try:
    main()
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0)
"""


@pytest.mark.slow
def test_time_and_memory_are_those_of_a_run(tmp_path: Path):
    def last_line(program: str) -> list[float]:
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300, cwd=tmp_path
        )
        return [float(word) for word in done.stdout.splitlines()[-1].split()]

    seconds, memory_bytes = last_line(ESTIMATE)
    begun = time.perf_counter()
    (peak_bytes,) = last_line(RUN)
    assert close(seconds, time.perf_counter() - begun, TIME_WITHIN)
    assert close(memory_bytes, peak_bytes, MEMORY_WITHIN)
