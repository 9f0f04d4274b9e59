"""Which runs a study makes, and what its page says about answers that are known."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import BEHAVIOURS, SCHEMES
from fairwave.metrics.advantage import Advantage, Means
from fairwave.report.device_losses import comparisons
from fairwave.report.incentives_page import paying, verdict, write_incentives
from fairwave.report.study_panels import write_pareto, write_responses
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario
from fairwave.studies import incentives, pareto, responses
from fairwave.studies.jobs import Job, run_all

HONEST = Means(received_loss=1.0, received_accuracy=0.8, energy_j=0.25, utility=0.1, deviation=0.05)
DEFENDED = "proposed + defences"
PAPER = load_scenario("paper-clean")


def test_incentives_runs_everything_once():
    planned = list(incentives.jobs(PAPER, [0, 1], 20, incentives.known(PAPER)))
    assert len({job.name for job in planned}) == len(planned) == 2 * (1 + len(BEHAVIOURS.names()))
    compared = {(job.name.endswith("defended"), scheme) for job in planned for scheme in job.order.schemes}
    assert compared == {(setting.defended, setting.scheme) for setting in incentives.SETTINGS}
    fair = load_scenario("fair-mlp")
    for job in planned:
        scenario, entries = job.order.scenario, job.order.scenario.cheating.adversaries
        assert [entry.behaviour for entry in entries] == (
            [] if job.name.startswith("nobody") else [job.name.split("-")[0]]
        )
        defended = job.name.endswith("defended")
        assert scenario.defences.use == (fair.defences.use if defended else ())
        assert scenario.privacy.similarity == ("leave_one_out" if defended else "literal")


def test_what_cannot_be_studied_is_refused():
    with pytest.raises(ArgumentError, match="begins in round 3"):
        list(incentives.jobs(PAPER, [0], 2, []))
    with pytest.raises(ScenarioError, match="leaves nobody honest"):
        list(incentives.jobs(load_scenario("small", ["cell.num_devices=3"]), [0], 9, ["coalition"]))
    assert "part_of_data" not in incentives.known(load_scenario("fair-mlp"))


def test_pareto_gives_every_scheme_a_range():
    planned = list(pareto.jobs("paper-clean", [], list(SCHEMES), [0], 5))
    points = {name: sum(name in job.order.schemes for job in planned) for name in SCHEMES}
    assert min(points.values()) >= 3 and len({job.name for job in planned}) == len(planned)
    limits = {job.order.scenario.utility.energy_reference_j for job in planned if "proposed" in job.order.schemes}
    assert limits == {2 * value for value in pareto.BUDGETS_J}


def test_responses_stand_still():
    planned = list(responses.jobs("paper-clean", [], [0], 5))
    assert [job.order.scenario.utility.effort_fit for job in planned] == list(responses.FITS)
    assert all(job.order.scenario.radio.fading.law == "none" for job in planned)


def test_workers_are_needed():
    with pytest.raises(ArgumentError, match="at least one"):
        run_all([Job("one", Order(load_scenario("small")))], Path("nowhere"), "", 0, lambda name, step: None)


def answer(loss: float, energy: float, own_loss: float = 1.0, own_energy: float = 0.25) -> list[Advantage]:
    cheats = dataclasses.replace(HONEST, received_loss=loss, energy_j=energy)
    own = dataclasses.replace(HONEST, received_loss=own_loss, energy_j=own_energy)
    return [Advantage(cheats, HONEST, own, HONEST, detection_rate=1.0, false_alarm_rate=0.0)] * 2


@pytest.mark.parametrize(
    ("found", "pays", "said"),
    [
        (answer(1.5, 0.2), False, "' no: nobody who misbehaves has both"),
        (answer(0.9, 0.3), False, "' no: nobody who misbehaves has both"),
        (answer(0.9, 0.2), True, "it does for lazy (-10.0 % loss, +20.0 % saved)"),
        (answer(0.9, 0.2, own_energy=0.2), False, "but not than its honest self: lazy"),
        (answer(1.003, 0.2), False, "Nearly as good a model for 5% less energy or more has: lazy"),
        (answer(float("nan"), float("nan")), False, "There is no result for: lazy"),
    ],
)
def test_the_verdict_comes_first_and_leaves_nothing_out(tmp_path, found, pays, said):
    answers = {("lazy", title): found for title in ("max_power", DEFENDED)}
    assert (paying(answers, ["lazy"], DEFENDED) == ["lazy"]) == pays
    assert said in verdict(answers, ["lazy"], DEFENDED)
    page = write_incentives(answers, ["lazy"], ["max_power", DEFENDED], DEFENDED, "about", tmp_path)
    text = page.read_text(encoding="utf-8")
    assert text.index(said.replace("'", "&#x27;")) < text.index("In numbers") and "Colours: loss (%)" in text


def results(schemes_: list[str], worst: list[float]) -> xr.Dataset:
    shape = (len(schemes_), 2, 6, 10)
    dims = ("scheme", "seed", "round", "device")
    loss = np.ones(shape)
    loss[..., -1] = np.array(worst)[:, None, None]
    values = {
        "received_loss": loss,
        "energy_j": np.full(shape, 0.25),
        "participating": np.ones(shape, bool),
        "outage": np.zeros(shape, bool),
        "optimal_iterations": np.full(shape, 90.0),
    }
    return xr.Dataset(
        {name: (dims, value) for name, value in values.items()},
        coords={"scheme": schemes_, "seed": [0, 1], "round": np.arange(1, 7), "device": np.arange(10)},
    )


def test_the_report_says_who_helps_the_worst_off():
    told = comparisons(results(["max_power", "term", "afl"], [2.0, 1.5, 2.5]))
    assert told[0].startswith("afl does not lower") and told[1].startswith("term lowers") and "-25.0 %" in told[1]
    assert comparisons(results(["term"], [1.0])) == []


def test_pages_with_figures(tmp_path):
    page = write_pareto({"power-1": results(["max_power"], [2.0])}, "about", tmp_path / "pareto")
    assert "max_power" in page.read_text("utf-8") and (page.parent / "figures" / "pareto.svg").exists()
    moving = results(["proposed"], [1.0])
    moving["optimal_iterations"][..., -1, :] = 80.0
    page = write_responses({"paper": results(["proposed"], [1.0]), "window": moving}, "about", tmp_path / "responses")
    text = page.read_text("utf-8")
    assert "the answers settle" in text and "do not settle" in text
