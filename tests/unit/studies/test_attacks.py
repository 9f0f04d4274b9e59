"""Which runs the study of attacks makes, and what its table and its file say about answers that are known."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

from fairwave.errors import ArgumentError, OutputError, ScenarioError
from fairwave.extensions import AGGREGATORS, BEHAVIOURS
from fairwave.report.attacks_table import Outcome, attacks_table, outcomes, write_outcomes
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.studies import attacks as study

PAPER = load_scenario("paper-clean", ["cell.num_devices=20"])
ASKED = Order(PAPER, ("no_privacy",), (0, 1), 7)


def test_every_attack_meets_every_aggregator_once():
    aggregators = AGGREGATORS.builtin_names()
    planned = list(study.jobs(PAPER, study.DEFAULT, aggregators, 0.2, ASKED))
    assert len({job.name for job in planned}) == len(planned) == (1 + len(study.DEFAULT)) * len(aggregators)
    for job in planned:
        defences, entries = job.order.scenario.defences, job.order.scenario.cheating.adversaries
        attack = entries[0].behaviour if entries else study.NOBODY
        assert job.name == study.job_name(attack, defences.aggregator) and len(entries) <= 1
        assert defences.attacker_share == 0.2 and all(len(entry.devices) == 4 for entry in entries)
        assert (job.order.schemes, job.order.seeds, job.order.rounds) == (("no_privacy",), (0, 1), 7)
    assert set(study.DEFAULT) <= set(BEHAVIOURS.builtin_names())
    assert study.harmful(PAPER) == list(study.DEFAULT)
    assert set(study.DEFAULT) - set(study.harmful(load_scenario("fair"))) == {"backdoor"}


@pytest.mark.parametrize(
    ("devices", "share", "count"), [(20, 0.2, 4), (20, 0.4, 8), (10, 0.25, 2), (3, 0.1, 1), (7, 0.49, 3)]
)
def test_attackers_stand_evenly(devices, share, count):
    found = study.placed(devices, share)
    assert len(set(found)) == len(found) == count and all(0 <= place < devices for place in found)
    assert abs(np.mean(found) - (devices - 1) / 2) <= 0.5


@pytest.mark.parametrize(
    ("attacks", "aggregators", "share", "said"),
    [
        (["sign_flop"], ["mean"], 0.2, "--attacks: 'sign_flop' is unknown here; did you mean"),
        (["sign_flip"], ["krumm"], 0.2, "--aggregators: 'krumm' is unknown here; did you mean"),
        (["sign_flip"], [], 0.2, "--aggregators: names nobody"),
        (["sign_flip"], ["mean"], 0.5, "--share 0.5"),
        (["sign_flip"], ["mean"], 0.0, "--share 0"),
    ],
)
def test_what_cannot_be_studied_is_refused(attacks, aggregators, share, said):
    with pytest.raises(ArgumentError, match=said):
        list(study.jobs(PAPER, attacks, aggregators, share, ASKED))


def test_numbers_have_no_accuracy():
    numbers = PAPER.model_copy(update={"data": PAPER.data.model_copy(update={"target": "number"})})
    with pytest.raises(ScenarioError, match="has no accuracy"):
        list(study.jobs(numbers, ["sign_flip"], ["mean"], 0.2, ASKED))


def test_accuracy_is_that_of_the_last_rounds():
    values = np.array([[[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 0.5]]])
    results = xr.Dataset(
        {"test_accuracy": (("scheme", "seed", "round"), values)},
        coords={"scheme": ["no_privacy"], "seed": [3, 8], "round": range(1, 8)},
    )
    found = outcomes("fang", "krum", results)
    assert [(one.attack, one.aggregator, one.seed) for one in found] == [("fang", "krum", 3), ("fang", "krum", 8)]
    assert [one.accuracy for one in found] == pytest.approx([0.5, 0.5])
    assert [one.backdoor_success for one in found] == [None, None]
    marked = outcomes("backdoor", "krum", results.assign(backdoor_success=1.0 - results["test_accuracy"]))
    assert [one.backdoor_success for one in marked] == pytest.approx([0.5, 0.5])


FOUND = [
    Outcome("nobody", "mean", 0, 0.91),
    Outcome("nobody", "mean", 1, 0.93),
    Outcome("fang", "mean", 0, 0.125),
    Outcome("fang", "mean", 1, 0.375),
    Outcome("backdoor", "mean", 0, 0.9, 0.8),
    Outcome("backdoor", "mean", 1, 0.9, 0.7),
]


def test_table_and_file(tmp_path: Path):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(attacks_table(FOUND))
    rows = [line.split("│")[1:3] for line in console.export_text().splitlines() if "│" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["nobody", "92.0"],
        ["fang", "25.0"],
        ["backdoor", "90.0"],
        ["marked samples", "75.0"],
    ]
    lines = write_outcomes(FOUND, tmp_path).read_text("utf-8").splitlines()
    assert lines[0] == "attack,aggregator,seed,accuracy,backdoor_success" and len(lines) == 1 + len(FOUND)
    assert lines[1] == "nobody,mean,0,0.91," and lines[-1] == "backdoor,mean,1,0.9,0.7"
    with pytest.raises(OutputError, match="cannot be written"):
        write_outcomes(FOUND, tmp_path / "nowhere")
