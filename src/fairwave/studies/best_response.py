"""The best that a strategic device can do: a search over strategies, and the price of honesty on seeds of their own.

Random strategies first, then others near the best of them, each against the same device's honest self on the same
seeds. The best of many tries looks better than it is, so that the answer comes from seeds that no try has seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.keys import Stream, host_generator
from fairwave.metrics.price_of_honesty import Answer, Outcome
from fairwave.policy.utility import most_utility, received_utility
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Cheating
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.studies.jobs import Job
from fairwave.studies.strategies import Strategy, axes_of, drawn, near
from fairwave.types import Scalar

if TYPE_CHECKING:
    import xarray as xr

HONEST = Strategy((), 1)
LAST = 5
"""Rounds at the end over which losses are taken: what a device ends with."""

RunJobs = Callable[[Sequence[Job]], dict[str, "xr.Dataset"]]
"""Runs jobs, or finds them done, and returns their results by name."""


@dataclasses.dataclass(frozen=True)
class Search:
    """One device of a scenario looks for its best response."""

    scenario: Scenario
    scheme: str
    rounds: int
    seeds: tuple[int, ...]
    fresh_seeds: tuple[int, ...]

    @property
    def device(self) -> int:
        """In the middle of the cell, where distance neither helps nor harms."""
        return self.scenario.cell.num_devices // 2

    def job(self, name: str, strategy: Strategy, seeds: tuple[int, ...]) -> Job:
        """The run in which the device plays a strategy."""
        cast = Cheating(adversaries=strategy.entries(self.device))
        stage = self.scenario.model_copy(update={"cheating": cast})
        return Job(name, Order.checked(stage, (self.scheme,), seeds, self.rounds))


def search(game: Search, tries: int, run: RunJobs) -> Answer:
    """The answer after so many random strategies, and half as many near the best ones."""
    axes = axes_of(game.scenario)
    first = [drawn(axes, _random(number), game.rounds) for number in range(tries)]
    tried = _outcomes(game, "try", first, game.seeds, run)
    centres = [first[_best_by(key, tried)] for key in (_utility, _saving)]
    second = [
        near(axes, centres[number % 2], _random(number), game.rounds) for number in range(tries, tries + tries // 2)
    ]
    tried += _outcomes(game, "near", second, game.seeds, run)
    finalists = [(first + second)[_best_by(key, tried)] for key in (_utility, _saving)]
    distinct = list(dict.fromkeys(finalists))  # one strategy is often both
    fresh = dict(zip(distinct, _outcomes(game, "fresh", distinct, game.fresh_seeds, run), strict=True))
    return Answer(sorted(tried, key=_utility, reverse=True), *(fresh[finalist] for finalist in finalists))


def _random(number: int) -> np.random.Generator:
    return host_generator(0, Stream.SWEEP, number)


def _utility(one: Outcome) -> float:
    return float(np.mean(one.utility_gain))


def _saving(one: Outcome) -> float:
    return one.cheap_gain


def _best_by(key: Callable[[Outcome], float], tried: Sequence[Outcome]) -> int:
    return max(range(len(tried)), key=lambda number: key(tried[number]))


def _outcomes(
    game: Search, prefix: str, strategies: Sequence[Strategy], seeds: tuple[int, ...], run: RunJobs
) -> list[Outcome]:
    jobs = [game.job(f"{prefix}-{number}", strategy, seeds) for number, strategy in enumerate(strategies)]
    calm = "honest" if seeds == game.seeds else "honest-fresh"
    found = run([game.job(calm, HONEST, seeds), *jobs])
    return [
        outcome(strategy, found[job.name], found[calm], game) for strategy, job in zip(strategies, jobs, strict=True)
    ]


def outcome(strategy: Strategy, played: xr.Dataset, honest: xr.Dataset, game: Search) -> Outcome:
    """What a strategy brought, from the runs with it and without it."""
    theirs, own = (_of_device(run, game.device) for run in (played, honest))
    value, before = (_worth(game, one) for one in (theirs, own))
    honest_worth = np.nanmean(before, axis=1)
    return Outcome(
        strategy.words,
        utility_gain=np.nanmean(value - before, axis=1) / np.abs(honest_worth),
        loss_change=_end(theirs["received_loss"]) / _end(own["received_loss"]) - 1.0,
        energy_saved=1.0 - np.nanmean(theirs["energy_j"], axis=1) / np.nanmean(own["energy_j"], axis=1),
        most_gain=(_most_worth(game) - honest_worth) / np.abs(honest_worth),
    )


@double_precision()
def _worth(game: Search, rounds: dict[str, np.ndarray]) -> np.ndarray:
    scale, reference_j = _preferences(game)
    deviation, energy_j = jnp.asarray(rounds["deviation"]), jnp.asarray(rounds["energy_j"])
    return np.asarray(received_utility(scale, deviation, energy_j, reference_j))


@double_precision()
def _most_worth(game: Search) -> float:
    return float(most_utility(*_preferences(game)))


def _preferences(game: Search) -> tuple[Scalar, Scalar]:
    """The effort scale and the reference energy of the device that plays."""
    values = DeviceValues(game.scenario)
    scale, reference_j = (
        jnp.broadcast_to(jnp.asarray(values(name)), values.num_devices)[game.device]
        for name in ("effort_scale", "energy_reference_j")
    )
    return scale, reference_j


def _of_device(run: xr.Dataset, device: int) -> dict[str, np.ndarray]:
    one = run.isel(scheme=0, device=device)
    return {name: one[name].transpose("seed", "round").values for name in ("deviation", "energy_j", "received_loss")}


def _end(losses: np.ndarray) -> np.ndarray:
    ends: np.ndarray = np.nanmean(losses[:, -LAST:], axis=1)
    return ends
