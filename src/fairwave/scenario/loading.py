"""From a preset name or a TOML file, plus overrides, to a checked `Scenario`.

A file may start from another with `extends = "paper"` (a preset, or a path beside it). Groups are merged key by
key; a key given again replaces the old value whole, and the value "unset" drops it.
"""

from __future__ import annotations

import copy
import importlib.resources
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwave.errors import ScenarioError, did_you_mean
from fairwave.extensions import DATA
from fairwave.plugins import load_plugins
from fairwave.scenario.complaints import one_line
from fairwave.scenario.parameters import Scenario

UNSET = "unset"
TABLES = (".csv", ".parquet")
"""Endings of files with a row per device, which are often taken for scenarios."""
IF_MISSING = 'add it, or start the file with extends = "paper"'
_PRESETS = importlib.resources.files("fairwave.scenario") / "presets"


def preset_names() -> list[str]:
    """Names of the presets that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _PRESETS.iterdir() if entry.name.endswith(".toml"))


def preset_summary(name: str) -> str:
    """The comment that opens a preset's file."""
    lines = (_PRESETS / f"{name}.toml").read_text("utf-8").splitlines()
    opening = lines[: next(index for index, line in enumerate(lines) if not line.startswith("#"))]
    return " ".join(line.lstrip("# ") for line in opening)


def load_scenario(
    source: str | Path = "paper",
    overrides: Iterable[str] = (),
    *,
    settings: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    plugins: Iterable[str | Path] = (),
) -> Scenario:
    """The scenario named by a preset or a TOML file, with `group.key=value` overrides applied.

    Args:
        source: The name of a preset ('fairwave scenario list'), or a TOML file.
        overrides: Settings such as `cell.num_devices=20`, as `--set` takes them.
        settings: Overrides too, by the same dotted names, with values as TOML has them.
        folder: Where names of files begin; left out, the current folder.
        plugins: Python files whose members the scenario may name, beside those that it lists itself.

    Returns:
        The scenario, checked and frozen.

    Example:
        >>> load_scenario("paper", ["cell.num_devices=20", "radio.bandwidth_hz=500 kHz"]).cell.num_devices
        20
    """
    beside = folder or Path.cwd()
    load_plugins(beside / plugin for plugin in plugins)
    tables = _read(str(source), beside, ())
    for override in overrides:
        _apply(tables, override)
    for path, value in (settings or {}).items():
        _put(tables, path.split("."), value, path)
    _anchor(tables, beside)
    more = [str((beside / plugin).resolve()) for plugin in plugins]
    if more:
        tables["plugins"] = list(dict.fromkeys((*tables.get("plugins", ()), *more)))
    return build(tables, str(source))


def build(tables: dict[str, Any], where: str) -> Scenario:
    """A checked scenario from plain tables; `where` opens the error message."""
    try:
        return Scenario.model_validate(tables)
    except ValidationError as error:
        raise ScenarioError(f"{where}: {one_line(error, Scenario, IF_MISSING)}") from None


def _read(source: str, folder: Path, trail: tuple[str, ...], asked_by: str = "") -> dict[str, Any]:
    """Merged tables of a source and of all that it extends; `asked_by` is the file that extends it."""
    is_preset = source in preset_names()
    path = Path(source) if is_preset else (folder / source).resolve()
    name = source if is_preset else str(path)
    if name in trail:
        raise ScenarioError(f"{source}: extends itself ({' -> '.join((*trail, name))}); remove one 'extends'")
    opening = f'{asked_by}: extends "{source}"' if asked_by else source
    tables = _parse(_text(source, path, is_preset, opening), opening)
    parent = tables.pop("extends", None)
    if not is_preset:
        _anchor(tables, path.parent)
    if parent is None:
        return tables
    if not isinstance(parent, str):
        raise ScenarioError(
            f'{source}: extends = {parent!r} is no name; give a preset or a file, as in extends = "paper"'
        )
    base = _read(parent, path.parent, (*trail, name), source)
    for group, content in tables.items():
        merged = base.get(group)
        if group == "plugins" and isinstance(content, list) and isinstance(merged, list):
            base[group] = [*merged, *content]
        elif isinstance(content, dict) and isinstance(merged, dict):
            base[group] = {k: v for k, v in {**merged, **content}.items() if v != UNSET}
        else:
            base[group] = content
    return base


def _text(source: str, path: Path, is_preset: bool, opening: str) -> str:
    """What a preset or a file says; `opening` begins the error if there is none, and names who asked for it."""
    if is_preset:
        return (_PRESETS / f"{source}.toml").read_text("utf-8")
    if not path.exists():
        if path.suffix in (".toml", *TABLES) or "/" in source:
            raise ScenarioError(
                f"{opening}: no such file; check the path, or start from a preset (fairwave scenario list)"
            )
        raise ScenarioError(f"{opening}: no such preset or file; {did_you_mean(source, preset_names())}")
    if path.suffix.lower() in TABLES:
        raise ScenarioError(
            f"{opening}: is a table of devices, not a scenario; 'fairwave plan --devices {source}' plans for it, and a "
            f'scenario takes its columns, as in cell.placement = {{ law = "file", file = "{source}" }}'
        )
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{opening}: byte {error.start} is not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise ScenarioError(f"{opening}: cannot be read ({error.strerror}); give a readable TOML file") from None


def _parse(text: str, source: str) -> dict[str, Any]:
    if not text.strip():
        raise ScenarioError(f'{source}: the file is empty; start with extends = "paper"')
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error).splitlines()[0]
        raise ScenarioError(f"{source}: not valid TOML: {problem}; correct that line") from None


def _anchor(tables: dict[str, Any], folder: Path) -> None:
    """Make the files named in a scenario relative to it, wherever the program is started from."""
    for group in tables.values():
        for value in group.values() if isinstance(group, dict) else ():
            if isinstance(value, dict) and isinstance(value.get("file"), str):
                value["file"] = str(folder / value["file"])
    listed = tables.get("plugins")
    if isinstance(listed, list) and all(isinstance(each, str) for each in listed):
        tables["plugins"] = [str((folder / each).resolve()) for each in listed]
        load_plugins(tables["plugins"])  # before names are told from files: a plugin may have the data set
    data = tables.get("data")
    if isinstance(data, dict) and isinstance(data.get("source"), str) and not _is_name(data["source"]):
        data["source"] = str(folder / data["source"])


def _is_name(source: str) -> bool:
    """Whether a data set is named, not a file."""
    return source == "" or source in DATA or source.startswith("hf:")


def _apply(tables: dict[str, Any], override: str) -> None:
    path, separator, text = override.partition("=")
    keys = path.strip().split(".")
    if not separator or len(keys) < 2 or not all(keys):
        raise ScenarioError(f"--set {override}: not of the form group.key=value; try --set radio.bandwidth_hz=500e3")
    _put(tables, keys, _value(text.strip()), f"--set {override}")


def _put(tables: dict[str, Any], keys: Sequence[str], value: Any, where: str) -> None:
    table = tables
    for key in keys[:-1]:
        step = table.setdefault(key, {})
        if not isinstance(step, dict):
            raise ScenarioError(f"{where}: '{key}' is a value, not a table; shorten the path")
        table = step
    if value == UNSET:
        table.pop(keys[-1], None)
    else:
        table[keys[-1]] = copy.deepcopy(value)


def _value(text: str) -> Any:
    """TOML where it is TOML, plain text otherwise, so that units and names need no quotes in a shell."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if set(parsed) == {"value"} else text
