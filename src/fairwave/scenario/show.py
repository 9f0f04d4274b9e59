"""A resolved scenario as TOML that explains itself and loads again."""

from __future__ import annotations

from typing import Any

from fairwave.scenario.group import Group
from fairwave.scenario.parameters import Scenario


def to_toml(scenario: Scenario) -> str:
    """Every value in SI units, each with its meaning as a comment; those that are not set are comments too."""
    import tomlkit

    document = tomlkit.document()
    if scenario.plugins:
        document.add("plugins", _item(list(scenario.plugins)))
    for name in type(scenario).model_fields:
        group = getattr(scenario, name)
        if not isinstance(group, Group):
            continue
        table = tomlkit.table()
        table.comment(" ".join((type(group).__doc__ or "").split()))
        for key, value in group.model_dump(mode="json").items():
            meaning = " ".join((type(group).model_fields[key].description or "").split())
            if value is None:
                table.add(tomlkit.comment(f"{key} is unset. {meaning}"))
                continue
            item = _item(value)
            item.comment(meaning)
            table.add(key, item)
        document.add(name, table)
    return tomlkit.dumps(document)


def _item(value: Any) -> Any:
    import tomlkit

    if isinstance(value, list) and value and isinstance(value[0], dict):
        array = tomlkit.array()
        array.extend(_item({key: inner for key, inner in each.items() if inner is not None}) for each in value)
        return array
    if not isinstance(value, dict):
        return tomlkit.item(value)
    inline = tomlkit.inline_table()
    inline.update(value)
    return inline
