"""The JSON schema of scenario files, by which editors complete and check TOML.

A file is not a whole scenario: it may start from another with `extends`, and then needs nothing of its own, and the
value "unset" drops what it would inherit.
"""

from __future__ import annotations

import copy
from typing import Any

from fairwave.extensions import DATA, MODELS, PRIVACY_MODES
from fairwave.scenario.loading import UNSET, preset_names
from fairwave.scenario.parameters import Scenario

NAMED = {("Learning", "model"): MODELS, ("Data", "source"): DATA, ("Privacy", "mode"): PRIVACY_MODES}
"""Keys whose values are names of a registry, which editors can then suggest."""
DROPPED = {"const": UNSET, "description": "drop what the file that is extended has here"}


def file_schema() -> dict[str, Any]:
    """The schema of a scenario file: all of a scenario, or a file to start from and what differs."""
    schema = copy.deepcopy(Scenario.model_json_schema())
    tables = {name: _table(schema, name) for name in schema["properties"]}
    whole = {name: {"required": table.pop("required")} for name, table in tables.items() if "required" in table}
    for (owner, key), registry in NAMED.items():
        schema["$defs"][owner]["properties"][key]["examples"] = registry.names()
    for table in tables.values():
        for key, meaning in table.get("properties", {}).items():
            table["properties"][key] = _or_unset(meaning)
    extends = {
        "type": "string",
        "description": "The preset or the file that this one starts from; what is given here replaces what it has.",
        "examples": preset_names(),
    }
    schema["title"] = "A scenario of fairwave"
    schema["properties"] = {"extends": extends, **schema["properties"]}
    needed = schema.pop("required")
    schema["anyOf"] = [{"required": ["extends"]}, {"required": needed, "properties": whole}]
    return schema


def _table(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The definition of a table of the file; an empty one for what is no table."""
    reference = schema["properties"][name].get("$ref", "")
    found: dict[str, Any] = schema["$defs"].get(reference.removeprefix("#/$defs/"), {})
    return found


def _or_unset(meaning: dict[str, Any]) -> dict[str, Any]:
    """The same value, or the word that drops it; how it is described stays beside both."""
    told: dict[str, Any] = {name: meaning[name] for name in ("title", "description", "examples") if name in meaning}
    if meaning.get("default") is not None:
        told["default"] = meaning["default"]
    value = {name: part for name, part in meaning.items() if name not in (*told, "default")}
    return {**told, "anyOf": [value, DROPPED]}
