"""The games of one run: truth and scores round by round, kept in a file of their own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairwave.errors import OutputError, StoreError
from fairwave.metrics.rank_correlation import rank_correlation
from fairwave.private_files import as_private_as_its_folder, replace_file

AGAIN = "shapley_again"
"""The name under which the truth on other samples stands beside the rules."""


@dataclasses.dataclass(frozen=True)
class PlayedGames:
    """What a run's devices were worth, and what each rule took them for: a value per game and device."""

    shapley: np.ndarray
    """The Shapley values of each round that was a game."""
    shapley_again: np.ndarray
    """The same on other test samples."""
    scores: Mapping[str, np.ndarray]
    """Every rule's scores in the same rounds, by the rule's name."""

    def agreement(self) -> dict[str, float]:
        """Rank correlation of summed scores with summed Shapley values, by rule; then of these on other samples.

        The last says how well the truth itself is known: no rule can be expected to agree better.
        """
        truth = self.shapley.sum(axis=0)
        compared = {**self.scores, AGAIN: self.shapley_again}
        return {name: rank_correlation(values.sum(axis=0), truth) for name, values in compared.items()}


def write_games(path: Path, games: PlayedGames, made_with: Mapping[str, Any]) -> None:
    """Keep the games of a run, beside what they were made with."""
    content = {
        "made_with": made_with,
        "shapley": games.shapley.tolist(),
        AGAIN: games.shapley_again.tolist(),
        "scores": {name: values.tolist() for name, values in games.scores.items()},
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(content, indent=1).encode(), 0o644)
        as_private_as_its_folder(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another --out") from None


def read_games(path: Path, made_with: Mapping[str, Any]) -> PlayedGames | None:
    """The games of a run that was finished before; None if there are none. Games of anything else are refused."""
    try:
        content = json.loads(path.read_text("utf-8"))
        held = content["made_with"]
        games = PlayedGames(
            np.array(content["shapley"]),
            np.array(content[AGAIN]),
            {name: np.array(values) for name, values in content["scores"].items()},
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OutputError(f"{path}: cannot be read ({error.strerror}); choose another --out") from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StoreError(f"{path}: holds no games of a run ({error}); remove it, or choose another --out") from None
    for name, value in json.loads(json.dumps(made_with)).items():
        if held.get(name) != value:
            what = f"{name} {held.get(name)}, not {value}" if name != "scenario" else "another scenario"
            raise StoreError(f"{path}: holds games of {what}; choose another --out")
    return games
