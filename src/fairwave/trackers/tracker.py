"""Programs that keep a record of experiments, as `fairwave run --track` names them."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from fairwave.errors import ArgumentError
from fairwave.extensions import TRACKERS
from fairwave.trackers.callback import Callback


@dataclasses.dataclass(frozen=True)
class Tracker:
    """A tracker that commands can ask for by name."""

    extends: ClassVar[str] = "trackers"

    name: str
    summary: str
    """Where it writes, in a line."""
    package: str
    """The Python package that it needs, which is also the name of the extra."""
    begin: Callable[[Path], Callback]
    """From the folder of a run to what follows its training."""


def trackers_for(names: Iterable[str], folder: Path) -> list[Callback]:
    """The trackers of a run; one whose package is missing is refused before anything is trained."""
    chosen: list[Tracker] = [TRACKERS.get(name, "--track") for name in dict.fromkeys(names)]
    for tracker in chosen:
        if importlib.util.find_spec(tracker.package) is None:
            raise ArgumentError(
                f"--track {tracker.name}: needs the package {tracker.package}; install it with: pip install "
                f"'fairwave[{tracker.name}]'"
            )
    return [tracker.begin(folder) for tracker in chosen]


def settings_of(scenario_values: dict[str, object]) -> dict[str, object]:
    """A scenario's nested tables as dotted names, which is how trackers show settings."""
    flat: dict[str, object] = {}
    for group, values in scenario_values.items():
        if isinstance(values, dict):
            flat |= {f"{group}.{name}": value for name, value in settings_of(values).items()}
        else:
            flat[group] = values
    return flat
