"""Which aggregator stands up to which attack? Every attack under every aggregator, with the same share of attackers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairwave.errors import ArgumentError, ScenarioError, did_you_mean
from fairwave.extensions import AGGREGATORS, BEHAVIOURS
from fairwave.runs.order import Order, objection_to_behaviour
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.parameters import Scenario
from fairwave.studies.jobs import Job

NOBODY = "nobody"
"""The attack of a cell in which everybody is honest."""
DEFAULT = (
    *("label_flip", "sign_flip", "scaled", "noise_update"),
    *("alie", "inner_product", "min_max", "fang", "sybils", "backdoor"),
)
"""Behaviours that harm the model, or hide something in it; the others save work."""
MOST_ATTACKERS = 0.5
"""Share of attackers from which no aggregator can know who is honest."""


def jobs(
    scenario: Scenario, attacks: Sequence[str], aggregators: Sequence[str], share: float, order: Order
) -> Iterator[Job]:
    """A run for every attack and for nobody misbehaving, under every aggregator; `order` has schemes, seeds and rounds.

    Aggregators that have to know the share of attackers are told the true one.
    """
    if not 0.0 < share < MOST_ATTACKERS:
        raise ArgumentError(f"--share {share:g}: no such share of attackers can be studied; give more than 0 and < 0.5")
    if scenario.data.target == "number":
        raise ScenarioError("data.target: 'number' has no accuracy to compare; take a data set of classes")
    _check("--attacks", attacks, BEHAVIOURS.names())
    _check("--aggregators", aggregators, AGGREGATORS.names())
    attackers = placed(scenario.cell.num_devices, share)
    for attack in (NOBODY, *attacks):
        cast = (
            Cheating() if attack == NOBODY else Cheating(adversaries=(Adversary(behaviour=attack, devices=attackers),))
        )
        for aggregator in aggregators:
            defended = scenario.defences.model_copy(update={"aggregator": aggregator, "attacker_share": share})
            stage = scenario.model_copy(update={"cheating": cast, "defences": defended})
            yield Job(job_name(attack, aggregator), Order.checked(stage, order.schemes, order.seeds, order.rounds))


def harmful(scenario: Scenario) -> list[str]:
    """The attacks that are played by default, of those that the scenario allows."""
    return [name for name in DEFAULT if objection_to_behaviour(scenario, BEHAVIOURS[name]) is None]


def job_name(attack: str, aggregator: str) -> str:
    """The name of the run that holds an attack under an aggregator."""
    return f"{attack}-{aggregator}"


def placed(num_devices: int, share: float) -> tuple[int, ...]:
    """The attackers: the share of all devices, rounded down but at least one, evenly over the cell."""
    count = max(1, int(share * num_devices + 1e-9))
    return tuple(int(place) for place in (np.arange(count) + 0.5) * num_devices / count)


def _check(option: str, names: Sequence[str], known: list[str]) -> None:
    if not names:
        raise ArgumentError(f"{option}: names nobody; give at least one of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise ArgumentError(f"{option}: '{name}' is unknown here; {did_you_mean(name, known)}")
