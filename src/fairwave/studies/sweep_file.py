"""The file that describes a sweep: which runs, and which parameters take which values. Strict, as scenarios are."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from fairwave.errors import ArgumentError, did_you_mean
from fairwave.extensions import COMPARED
from fairwave.runs.seeds import seeds_in
from fairwave.scenario.complaints import one_line
from fairwave.scenario.fields import keys_beside
from fairwave.scenario.group import Group
from fairwave.scenario.loading import preset_names
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.quantity import whole
from fairwave.studies.laws import Law, law_of

MOST_DRAWS = 100_000
ASKED_OTHERWISE = {"run.seed": "seeds", "run.num_rounds": "rounds"}
"""Parameters that a run takes from its order, and the key of the file that says it."""


def _name(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise ValueError(f'{value!r} is no scenario; give a preset or a file, as in scenario = "small"')
    return value


def _texts(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise ValueError(f'{value!r} is no list of texts; write them in brackets, as in ["this", "that"]')
    return tuple(value)


def _seeds(value: object) -> object:
    if isinstance(value, str):
        try:
            return seeds_in(value)
        except ArgumentError as error:
            raise ValueError(str(error).removeprefix("--seeds ")) from None
    if not isinstance(value, list | tuple) or not all(type(each) is int for each in value):
        raise ValueError(f'{value!r} are no seeds; give text such as "0..4" or a list such as [0, 3, 7]')
    return tuple(value)


def _grid(value: object) -> object:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a table; write [grid], then lines such as cell.num_devices = [10, 20]")
    found = dict(_leaves(value))
    for name, values in found.items():
        _check_parameter(name)
        if not isinstance(values, list) or not values:
            raise ValueError(f"{name}: {values!r} is no list of values; give one such as [10, 20]")
    return {name: tuple(values) for name, values in found.items()}


class Random(Group):
    """Points that are drawn: every key but the first two is a parameter with its law."""

    draws: Annotated[int, *whole(1, MOST_DRAWS)]
    """This many points are drawn. If more are asked for later, the first ones stay."""
    seed: Annotated[int, *whole(0, 2**53)] = 0
    """Another seed gives other draws."""
    laws: dict[str, Any] = Field(default_factory=dict)
    """Every other key is a parameter with its distribution."""

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is not a table; write [random], then draws = 10 and a law for each parameter")
        laws = {}
        for name, table in _leaves({key: inner for key, inner in value.items() if key not in ("draws", "seed")}):
            _check_parameter(name, beside=("draws", "seed"))
            try:
                laws[name] = law_of(name, table)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        if not laws:
            raise ValueError(
                'nothing to draw; add a law, such as privacy.epsilon = { law = "uniform", low = 0.5, high = 0.9 }'
            )
        return {key: value[key] for key in ("draws", "seed") if key in value} | {"laws": laws}


class Sweep(Group):
    """One study file, read."""

    scenario: Annotated[str, BeforeValidator(_name)]
    """This is a preset, or a TOML file beside the study file."""
    schemes: Annotated[tuple[str, ...], BeforeValidator(_texts)] = COMPARED
    """These schemes are compared at every point."""
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)] | None = None
    """Every point is repeated with these seeds. Default: the scenario's seed."""
    rounds: Annotated[int, *whole(1, 1_000_000)] | None = None
    """Every run has this many communication rounds. Default: the scenario's number."""
    set: Annotated[tuple[str, ...], BeforeValidator(_texts)] = ()
    """These overrides hold for all points, in the form of `--set`."""
    grid: Annotated[Mapping[str, tuple[Any, ...]], BeforeValidator(_grid)] = Field(default_factory=dict)
    """Every combination of these values of parameters is run."""
    random: Random | None = None
    """These parameters are drawn, with the same draws at every point of the grid."""

    @model_validator(mode="after")
    def _sweeps_something(self) -> Sweep:
        if not self.grid and self.random is None:
            raise ValueError("nothing is swept; add [grid] or [random]")
        twice = [name for name in self.grid if name in self.laws]
        if twice:
            raise ValueError(f"{twice[0]} stands in both [grid] and [random]; keep one")
        return self

    @property
    def laws(self) -> Mapping[str, Law]:
        """The laws of the parameters that are drawn."""
        return {} if self.random is None else self.random.laws

    @property
    def parameters(self) -> tuple[str, ...]:
        """All that is swept, in the order of the file."""
        return (*self.grid, *self.laws)

    @property
    def num_points(self) -> int:
        """Combinations times draws."""
        combinations = math.prod(len(values) for values in self.grid.values())
        return combinations * (1 if self.random is None else self.random.draws)


_SCENARIO_TABLES = {name for name in Scenario.model_fields if name not in Sweep.model_fields}
"""Tables and keys by which a scenario is known that starts from no other."""


def _is_scenario(path: Path) -> ArgumentError:
    return ArgumentError(
        f'{path}: is a scenario; a study file names it, as in scenario = "{path}", and what varies in it, in [grid]'
    )


def load_sweep(path: Path) -> Sweep:
    """A study file; whatever is wrong with it is said in one line."""
    try:
        if str(path) in preset_names() and not path.exists():
            raise _is_scenario(path)
        tables = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
        if "extends" in tables or ("scenario" not in tables and set(tables) & _SCENARIO_TABLES):
            raise _is_scenario(path)
        return Sweep.model_validate(tables)
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read ({error.strerror}); give a study file in TOML") from None
    except UnicodeDecodeError as error:
        raise ArgumentError(f"{path}: byte {error.start} is not UTF-8 text; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{path}: not valid TOML: {str(error).splitlines()[0]}; correct that line") from None
    except ValidationError as error:
        raise ArgumentError(f"{path}: {one_line(error, Sweep)}") from None


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and what stands there; TOML turns a dotted key that is not quoted into tables inside tables."""
    for key, value in table.items():
        if isinstance(value, dict) and not _is_law(value):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _is_law(table: Mapping[str, Any]) -> bool:
    """Whether a table describes a law, and no group of parameters, one of which may be called 'law' itself."""
    bounds = any(key in table and not isinstance(table[key], dict) for key in ("low", "high", "values"))
    return bounds or isinstance(table.get("law"), str)


def _check_parameter(name: str, beside: tuple[str, ...] = ()) -> None:
    """Refuse what is no parameter of a scenario, or is given elsewhere."""
    if name in ASKED_OTHERWISE:
        raise ValueError(f"{name} is not swept: {ASKED_OTHERWISE[name]} at the top of the file sets it for all points")
    keys = name.split(".")
    if len(keys) == 1:
        known = [*beside, *keys_beside(keys, Scenario)]
        raise ValueError(f"{name}: no parameter; {did_you_mean(name, known)} (a parameter has a dot: cell.num_devices)")
    for depth in range(1, len(keys) + 1):
        known_here = keys_beside(keys[:depth], Scenario)
        if keys[depth - 1] not in known_here:
            hint = did_you_mean(keys[depth - 1], known_here) if known_here else "shorten it"
            raise ValueError(f"{'.'.join(keys[:depth])}: unknown key; {hint}")
