"""The audit flags planted faults and leaves correct code alone: a shortened form of benchmarks/audit_mutants.py.

The device part of the audit makes some 35 tests, each of which raises a false alarm with probability 1e-6 at most: all
runs of correct code here pass but for one time in 5,000, and with fixed seeds almost always the same way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairwave.audit.audit import audit, parts_of
from fairwave.audit.audit_setting import AuditSetting
from fairwave.scenario.loading import load_scenario
from tests.audit.mutants import CENTRAL, MUTANTS, planted
from tests.end_to_end.command_line import fairwave

pytestmark = [pytest.mark.slow, pytest.mark.statistical]

RUNS, CLEAN = 3, 5
WHERE = {
    "no_noise_on_biases": "noise of single steps",
    "one_key_for_every_leaf": "noise of single steps",
    "noise_tiled_over_half_a_leaf": "noise of single steps",
    "uniform_noise": "noise of single steps",
    "noise_repeats_after_four_rounds": "noise of single steps",
    "one_key_for_all_devices": "noise of single steps",
    "keys_reused_on_alternate_steps": "noise of whole rounds",
    "division_by_the_realised_batch": "batches",
    "fixed_size_batches": "batches",
    "pairs_share_a_coin": "batches",
    "bias_left_out_of_the_length": "clipping",
    "clipping_per_layer": "clipping",
    "hidden_noise_free_state": "release by the access point",
}
"""Faults, and the part of the audit that finds each; the others are left to the benchmark."""


def flagged(part: str, overrides: tuple[str, ...], folder: Path, seed: int) -> bool:
    """Whether one part of the audit finds fault."""
    scenario = load_scenario("fair-mlp", list(overrides))
    verdicts = parts_of(scenario)[part](AuditSetting(scenario, seed, folder / str(seed)))
    return any(verdict.flagged for verdict in verdicts)


@pytest.mark.parametrize("name", WHERE)
def test_faults_are_flagged(name, tmp_path):
    with planted(name):
        found = [flagged(WHERE[name], MUTANTS[name].overrides, tmp_path, seed) for seed in range(RUNS)]
    assert all(found)


@pytest.mark.parametrize("overrides", [(), CENTRAL])
def test_correct_code_raises_no_alarm(overrides):
    scenario = load_scenario("fair-mlp", list(overrides))
    alarms = [f for seed in range(CLEAN) for verdict in audit(scenario, seed) for f in verdict.findings if f.flagged]
    assert alarms == []


def test_a_planted_fault_makes_the_command_fail(capsys, monkeypatch):
    with planted("central_noise_halved"):
        said = fairwave(capsys, monkeypatch, "audit", "fair-mlp", "--set", *CENTRAL)
    assert said.code == 6 and "REFUTED" in said.out and "! noise per leaf" in said.out
