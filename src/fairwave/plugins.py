"""Plugin files: a Python file whose schemes, rules, behaviours, defences, models, data sets and laws can be named.

Everything at the top level of the file that is one of these is added to its registry, under its own name. A run records
the digest of every plugin it uses, so that it is never continued with other code than it was begun with.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairwave import extensions
from fairwave.errors import ScenarioError
from fairwave.registry import Origin

_LOADED: dict[str, Origin] = {}
"""What this process has loaded, by path."""


def load_plugins(paths: Iterable[str | Path]) -> None:
    """Load plugin files, each once; one that has changed since is loaded again."""
    for path in paths:
        load_plugin(path)


def load_plugin(path: str | Path) -> Origin:
    """Load one plugin file and add what it defines; where it came from."""
    place = Path(path).resolve()
    origin = Origin(str(place), plugin_digest(place))
    if _LOADED.get(str(place)) == origin:
        return origin
    members = [each for each in vars(_executed(place, origin)).values() if _is_member(each)]
    if not members:
        raise ScenarioError(
            f"{path}: defines no scheme, rule, behaviour, defence, model, data set or fading law at its top level; "
            "add one, as in docs/extending.md"
        )
    for member in members:
        extensions.ALL[member.extends].add(member, member.name, origin)
    _LOADED[str(place)] = origin
    return origin


def plugin_digest(path: str | Path) -> str:
    """A digest of a plugin's file."""
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()
    except OSError as error:
        raise ScenarioError(f"{path}: plugin cannot be read ({error.strerror}); check plugins and --plugin") from None


def _executed(place: Path, origin: Origin) -> types.ModuleType:
    name = f"fairwave_plugin_{place.stem}_{origin.digest[:8]}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise ScenarioError(f"{place}: not a Python file; give a plugin as a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling look modules up there
    try:
        spec.loader.exec_module(module)
    except ScenarioError:
        del sys.modules[name]
        raise
    except Exception as error:  # whatever a user's file may raise
        del sys.modules[name]
        line = _line_of(error, place)
        raise ScenarioError(f"{place}{line}: {type(error).__name__}: {error}; correct the plugin") from error
    return module


def _line_of(error: BaseException, place: Path) -> str:
    """The line of the plugin at which it failed, as in ', line 7'."""
    import traceback

    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(place)]
    return f", line {lines[-1]}" if lines else ""


def _is_member(each: Any) -> bool:
    """Whether an object is something that a registry takes: a class where its members are classes, else an instance."""
    group = getattr(each, "extends", None)
    if group not in extensions.ALL or isinstance(each, type) != (group in extensions.OF_CLASSES):
        return False
    return isinstance(getattr(each, "name", None), str)
