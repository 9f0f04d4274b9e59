"""Do scores of contribution know who contributes? Every rule's scores beside the Shapley values of the same rounds.

Devices train under `fedavg`, which treats all alike: no rule's scores change what devices do or get.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

from fairwave.double_precision import training_precision
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.round import RoundAtServer
from fairwave.engine.round_game import Measure, RoundGame, Samples, received_updates
from fairwave.engine.server import part_of
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import SCHEMES
from fairwave.metrics.shapley import MOST_EXACT, all_coalitions, estimated_shapley, exact_shapley
from fairwave.runs.experiment import Experiment, run_rounds
from fairwave.runs.order import Order
from fairwave.scenario.cheating_parameters import Adversary, Cheating
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.partition_laws import Dirichlet, Iid, Partition, QuantitySkew
from fairwave.studies.contribution_scores import SCORE_RULES, RoundSeen, first_memories, scores_of_all
from fairwave.studies.played_games import PlayedGames, read_games, write_games

SCHEME = "fedavg"
SKEW, QUANTITY = 0.3, 1.0
"""Dirichlet parameters of label skew and of unequal numbers of samples."""
EFFORTS = (0.1, 0.2, 0.4, 0.6, 0.8)
"""Shares of their iterations that every other device does."""
BLOCKS = 8
"""Blocks of orders that the values of a game with more than `MOST_EXACT` players are estimated from."""


@dataclasses.dataclass(frozen=True)
class ContributionSetting:
    """How devices of a cell differ."""

    name: str
    change: Callable[[Scenario], Scenario]
    """The scenario with devices that differ so."""


def _split(law: Partition, **more: object) -> Callable[[Scenario], Scenario]:
    return lambda scenario: scenario.model_copy(
        update={"data": scenario.data.model_copy(update={"partition": law, **more})}
    )


def _wrong_labels(scenario: Scenario) -> Scenario:
    """Every third device, so that distance is not what tells them apart."""
    devices = tuple(range(1, scenario.cell.num_devices, 3))
    return _with(_split(Iid(law="iid"))(scenario), Adversary(behaviour="label_flip", devices=devices))


def _unequal_effort(scenario: Scenario) -> Scenario:
    efforts = zip(range(1, scenario.cell.num_devices, 2), EFFORTS, strict=False)
    lazy = [Adversary(behaviour="fewer_iterations", devices=(each,), strength=share) for each, share in efforts]
    return _with(_split(Iid(law="iid"))(scenario), *lazy)


def _with(scenario: Scenario, *entries: Adversary) -> Scenario:
    return scenario.model_copy(update={"cheating": Cheating(adversaries=entries)})


SETTINGS = (
    ContributionSetting("iid", _split(Iid(law="iid"))),
    ContributionSetting("label_skew", _split(Dirichlet(law="dirichlet", alpha=SKEW))),
    ContributionSetting(
        # Devices hold all samples of their shares: a limit would make them equal again.
        "unequal_data",
        _split(QuantitySkew(law="quantity", alpha=QUANTITY), samples_per_device=None, refreshed_samples=0),
    ),
    ContributionSetting("wrong_labels", _wrong_labels),
    ContributionSetting("unequal_effort", _unequal_effort),
)


@dataclasses.dataclass(frozen=True)
class Games:
    """Which rounds of a run are games, and how worth is measured."""

    rounds: int
    every: int
    """Rounds from one game to the next; the first round is one."""
    samples: int
    """Test samples that worth is measured on, and again as many others to tell how well it is known."""
    measure: Measure
    between: float = 0.0
    """Where values are estimated: worth of the grand coalition below which a game is not played: all values are 0."""
    within: float = 0.0
    """There too: worth that an order may lack of the grand coalition's when it is cut short.

    It suits games in which nobody does harm; else a coalition has that worth by chance before the harm comes.
    """

    def check(self, scenario: Scenario, num_test: int) -> None:
        """Refuse what cannot be played."""
        for option, value in (("--rounds", self.rounds), ("--every", self.every), ("--samples", self.samples)):
            if value < 1:
                raise ArgumentError(f"{option} {value}: too few; give at least 1")
        for option, limit in (("--between", self.between), ("--within", self.within)):
            if not 0.0 <= limit < float("inf"):
                raise ArgumentError(f"{option} {limit}: no worth; give 0 or more")
        needed = scenario.defences.validation_samples + 2 * self.samples
        if needed > num_test:
            raise ArgumentError(
                f"--samples {self.samples}: {needed} test samples are needed, two times that and those of the access "
                f"point (defences.validation_samples), and there are {num_test}; give fewer"
            )
        if scenario.learning.late_rounds or scenario.cell.num_devices < 3:
            raise ScenarioError(
                "learning.late_rounds, cell.num_devices: games are of one round's updates and three or more devices; "
                "set late_rounds to 0, or give more devices"
            )


def played(
    source: str,
    scenario: Scenario,
    seeds: Sequence[int],
    games: Games,
    folder: Path,
) -> Iterator[tuple[str, int, PlayedGames]]:
    """The games of every setting and seed, as they are done; what is there is read, not played again."""
    data: Experiment | None = None
    for setting in SETTINGS:
        run = scenario.run.model_copy(update={"evaluate_every": games.rounds, "num_rounds": games.rounds})
        changed = setting.change(scenario.model_copy(update={"run": run}))
        order = Order.checked(changed, (SCHEME,), tuple(seeds), games.rounds)
        for seed in seeds:
            path = folder / f"{source}-{setting.name}" / f"seed-{seed}.json"
            seeded = order.seeded(seed)
            made_with: dict[str, Any] = {"scenario": seeded.model_dump(mode="json"), **dataclasses.asdict(games)}
            found = read_games(path, made_with)
            if found is None:
                if data is None:
                    data = Experiment(order)  # read once for all settings, which differ in who holds what
                    games.check(changed, data.data.test_labels.size)
                found = play(SimulatedCell(seeded, SCHEMES[SCHEME], data.model, data.seen), games)
                write_games(path, found, made_with)
            yield setting.name, seed, found


def play(cell: SimulatedCell, games: Games) -> PlayedGames:
    """Run a cell, and play a game in every so many rounds."""
    referee = _Referee(cell, games)
    cell.witness = referee.look
    for _ in run_rounds(cell, games.rounds):
        pass
    scores = {rule.name: np.stack([each[rule.name] for each in referee.scores]) for rule in SCORE_RULES}
    return PlayedGames(np.stack(referee.shapley), np.stack(referee.again), scores)


class _Referee:
    """Scores every round by every rule, and knows the Shapley values of some."""

    def __init__(self, cell: SimulatedCell, games: Games) -> None:
        self._point, self._games = cell.access_point, games
        own = cell.scenario.defences.validation_samples
        cuts = np.cumsum([own, games.samples, games.samples])
        with training_precision():
            parts: list[Samples] = [
                part_of(self._point.test, np.arange(stop - size, stop))
                for stop, size in zip(cuts, (own, games.samples, games.samples), strict=True)
            ]
            flat = ravel_pytree(self._point.start().global_params)[0]
            self._memories = first_memories(self._point.rules.settings, cell.scenario.cell.num_devices, flat)
        self._own, *self._truths = parts
        self.shapley: list[np.ndarray] = []
        self.again: list[np.ndarray] = []
        self.scores: list[dict[str, np.ndarray]] = []

    def look(self, seen: RoundAtServer) -> None:
        """Rules remember every round, and so score every round; those that are no game are not kept."""
        point, number = self._point, int(seen.round_index)
        updates = received_updates(point, seen, self._own)
        after = seen.concluded.server
        noise = updates.reported_noise_std if point.rules.mode.counts_steps else None
        with training_precision():
            model = ravel_pytree(after.global_params)[0]
            seen_by_rules = RoundSeen(updates, model, after.deviation, noise)
            scores, self._memories = scores_of_all(point.rules.settings, seen_by_rules, self._memories)
        if number % self._games.every:
            return
        self.scores.append({name: np.asarray(values, np.float64) for name, values in scores.items()})
        for values, samples in zip((self.shapley, self.again), self._truths, strict=True):
            game = RoundGame(point.model, seen.server.global_params, updates, samples, self._games.measure)
            values.append(self._values(game, number))

    def _values(self, game: RoundGame, number: int) -> np.ndarray:
        num_devices = self._point.devices.size
        if num_devices <= MOST_EXACT:
            return exact_shapley(game(all_coalitions(num_devices)))
        return estimated_shapley(
            game,
            num_devices,
            blocks=BLOCKS,
            seed=self._point.scenario.run.seed,
            number=number,
            between=self._games.between,
            within=self._games.within,
        ).values
