"""Does cheating pay? Every behaviour under the benchmark, the paper's rule, the defended rule, and a peer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import BEHAVIOURS
from fairwave.runs.order import Order, objection_to_behaviour
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario
from fairwave.studies.jobs import Job

HONEST = "nobody"
FIRST_ROUND = 3
"""In which misbehaviour begins: an echo needs something to echo."""
SETTLING = 2
"""Rounds after the first misbehaviour that are not counted."""
FEWEST_ROUNDS = FIRST_ROUND + SETTLING
COALITION = 3
"""Devices of a behaviour that takes several: they pool copies or updates."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """A column of the answer."""

    title: str
    scheme: str
    defended: bool


SETTINGS = (
    Setting("max_power", "max_power", defended=False),
    Setting("proposed, literal", "proposed", defended=False),
    Setting("proposed + defences", "proposed", defended=True),
    Setting("cgsv", "cgsv", defended=False),
)


def jobs(scenario: Scenario, seeds: Sequence[int], rounds: int, names: Sequence[str]) -> Iterator[Job]:
    """Runs for every behaviour and for nobody misbehaving: one undefended, one defended."""
    if rounds < FEWEST_ROUNDS:
        raise ArgumentError(
            f"--rounds {rounds}: misbehaviour begins in round {FIRST_ROUND}; give {FEWEST_ROUNDS} or more"
        )
    for name in (HONEST, *names):
        cast = Cheating() if name == HONEST else Cheating(adversaries=(_entry(scenario, name),))
        for defended in (False, True):
            stage = (_defended if defended else _literal)(scenario).model_copy(update={"cheating": cast})
            schemes = tuple(setting.scheme for setting in SETTINGS if setting.defended == defended)
            yield Job(job_name(name, defended), Order.checked(stage, schemes, tuple(seeds), rounds))


def job_name(behaviour: str, defended: bool) -> str:
    """The name of the run that holds a behaviour."""
    return f"{behaviour}-{'defended' if defended else 'open'}"


def known(scenario: Scenario) -> list[str]:
    """All behaviours that the scenario allows."""
    return [name for name, each in BEHAVIOURS.items() if objection_to_behaviour(scenario, each) is None]


def _entry(scenario: Scenario, name: str) -> Adversary:
    """Played in the middle of the cell, where distance neither helps nor harms."""
    middle = scenario.cell.num_devices // 2
    count = COALITION if BEHAVIOURS[name].needs_company else 1
    if scenario.cell.num_devices <= count:
        raise ScenarioError(
            f"cell.num_devices: {scenario.cell.num_devices} leaves nobody honest beside '{name}' ({count}); give more"
        )
    first = middle - count // 2
    return Adversary(behaviour=name, devices=tuple(range(first, first + count)), first_round=FIRST_ROUND)


def _literal(scenario: Scenario) -> Scenario:
    return _scored(scenario, {"similarity": "literal", "similarity_memory": 0.0}, ())


def _defended(scenario: Scenario) -> Scenario:
    """As the preset 'fair-mlp' scores, defends and draws copies: its scores fit every way to train."""
    fair = load_scenario("fair-mlp")
    scores = {name: getattr(fair.privacy, name) for name in ("similarity", "similarity_memory", "copies")}
    return _scored(scenario, scores, fair.defences.use)


def _scored(scenario: Scenario, scores: dict[str, object], use: tuple[str, ...]) -> Scenario:
    return scenario.model_copy(
        update={
            "privacy": scenario.privacy.model_copy(update=scores),
            "defences": scenario.defences.model_copy(update={"use": use}),
        }
    )
