"""Every key of a scenario file with its type, unit, default, range and meaning, read from the pydantic models."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fairwave.extensions import FADING
from fairwave.scenario.fading_laws import FadingLaw
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.quantity import Column, Limit

WORDS = {str: "text", bool: "true or false", int: "whole number", float: "number"}


@dataclasses.dataclass(frozen=True)
class Key:
    """One key, as the reference shows it."""

    name: str
    kind: str
    unit: str
    default: str
    range: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of a scenario file, or one law that may stand in it."""

    name: str
    summary: str
    keys: tuple[Key, ...]
    law: str = ""

    @property
    def prefix(self) -> str:
        """What comes before its keys in a dotted name."""
        return f"{self.name}." if self.name else ""

    @property
    def title(self) -> str:
        """Its heading."""
        return f'{self.name}, law "{self.law}"' if self.law else self.name or "Top level"


def tables() -> list[Table]:
    """All tables in the order of the scenario."""
    return list(_tables(Scenario, ""))


def page() -> str:
    """The page of the reference."""
    lines = [
        "# Scenario keys",
        "",
        "A scenario file is TOML. Each section below is one of its tables, and each heading is one key. The page is",
        "generated from the models that check scenario files. A key without a default has to be given by the file or",
        "by the preset that the file extends. Numbers are in SI units. A value with another unit is text, such as",
        '`"250 kHz"`.',
        'A key that takes "one value, or one per device" also accepts a list, or `{ file = ..., column = ... }`.',
        "",
        "A file may begin with `extends`, the name of a preset or another file. Its own values then replace those of",
        'the other. The value `"unset"` drops an inherited value, so that the default applies again.',
    ]
    for table in tables():
        lines += ["", f"## {table.title}", "", table.summary]
        for key in table.keys:
            lines += [
                "",
                f"### `{table.prefix}{key.name}`{f' ({table.law})' if table.law else ''}",
                "",
                key.meaning,
                "",
            ]
            lines += [f"- **Type**: {key.kind}"]
            lines += [f"- **Unit**: {key.unit}"] if key.unit else []
            lines += [f"- **Default**: {key.default}"]
            lines += [f"- **Range**: {key.range}"] if key.range else []
    return "\n".join(lines) + "\n"


def _tables(model: type[BaseModel], name: str, law: str = "") -> Iterator[Table]:
    fields = model.model_fields
    inner = {key: list(_models(field.annotation)) for key, field in fields.items()}
    own = [_key(key, field) for key, field in fields.items() if (name or not inner[key]) and not (law and key == "law")]
    summary = " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())
    yield Table(name, summary, tuple(own), law)
    for key, models in inner.items():
        place = f"{name}.{key}" if name else key
        for each in models:
            if "law" in each.model_fields:
                if len(each.model_fields) > 1:
                    yield from _tables(each, place, law_of(each))
            elif each is not Column:
                yield from _tables(each, place)


def law_of(model: type[BaseModel]) -> str:
    """The name by which a table chooses this law."""
    name: str = typing.get_args(model.model_fields["law"].annotation)[0]
    return name


def _key(name: str, field: FieldInfo) -> Key:
    limit = _limit(field)
    unit = limit.dimension.unit if limit else ""
    meaning = _meaning(name, field)
    reach = _sentence(limit.describe()) if limit else _choices(field.annotation)
    return Key(name, _kind(field, limit), unit, _default(field), reach, meaning)


def _meaning(name: str, field: FieldInfo) -> str:
    """What the docstring below the field says."""
    if not field.description:
        raise KeyError(f"scenario key '{name}' has no description; add a docstring below the field")
    return " ".join(field.description.split())


def _limit(field: FieldInfo) -> Limit | None:
    """The range of the number or numbers that a key holds."""
    return next((part for part in (*field.metadata, *_parts(field.annotation)) if isinstance(part, Limit)), None)


def _kind(field: FieldInfo, limit: Limit | None) -> str:
    parts = list(_parts(field.annotation))
    models = list(_models(field.annotation))
    many = any(typing.get_origin(part) is tuple for part in parts)
    if Column in parts and limit:
        each = "whole number" if limit.whole else "number"
        return f"{each}: one value, or one per device"
    if models and all("law" in model.model_fields for model in models):
        return f"table with `law`, one of {', '.join(f'`{law_of(model)}`' for model in models)}"
    if models:
        return "list of tables" if many else "table"
    literal = next((part for part in parts if typing.get_origin(part) is typing.Literal), None)
    if literal is not None:
        return "choice" if int not in parts else "choice, or a whole number"
    plain = "whole number" if limit and limit.whole else ""
    plain = plain or next((WORDS[part] for part in parts if part in WORDS), "file name")
    return f"list; each member is a {plain}" if many else plain


def _choices(annotation: object) -> str:
    for part in _parts(annotation):
        if typing.get_origin(part) is typing.Literal:
            return ", ".join(f"`{_toml(each)}`" for each in typing.get_args(part))
    return ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "none; it has to be given"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "not set"
    if isinstance(value, BaseModel):
        law = getattr(value, "law", None)
        return f'`{{ law = "{law}" }}`' if law else "the defaults of its keys"
    return f"`{_toml(value)}`"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    for part in _parts(annotation):
        if part is FadingLaw:
            yield from FADING.values()
        elif isinstance(part, type) and issubclass(part, BaseModel) and part is not Column:
            yield part


def _parts(annotation: object) -> Iterator[object]:
    """An annotation and all that it is made of."""
    yield annotation
    if typing.get_origin(annotation) is typing.Literal or (
        isinstance(annotation, types.GenericAlias | type) and (typing.get_origin(annotation) is None)
    ):
        return
    for part in typing.get_args(annotation):
        yield from _parts(part)
    for part in getattr(annotation, "__metadata__", ()):
        yield part


def _sentence(text: str) -> str:
    return text.removeprefix("a ")
