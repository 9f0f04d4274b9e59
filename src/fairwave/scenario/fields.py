"""What a dotted name such as 'radio.fading.scale' stands for: keys that could stand there, the range of a number."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fairwave.extensions import FADING
from fairwave.scenario.fading_laws import FadingLaw
from fairwave.scenario.quantity import Limit


def keys_beside(place: Sequence[str], root: type[BaseModel]) -> set[str]:
    """Keys that would be right at the place of the last one."""
    return set(_fields_beside(place, root))


def limit_of(place: Sequence[str], root: type[BaseModel]) -> Limit | None:
    """Dimension and range of a number; None for what is no single number."""
    field = _fields_beside(place, root)[place[-1]]
    pending: list[object] = [*field.metadata, field.annotation]
    while pending:
        part = pending.pop()
        if isinstance(part, Limit):
            return part
        if typing.get_origin(part) is not tuple:  # the limit of a list's members is not the list's
            pending.extend(typing.get_args(part))
    return None


def tables_at(place: Sequence[str], root: type[BaseModel]) -> list[type[BaseModel]]:
    """The tables that may stand at a place, or be members of a list there."""
    keys = [key for key in place if not key.isdecimal()]  # a number is a place in a list, whose key led to its tables
    models: list[type[BaseModel]] = [root]
    for key in keys:
        models = [inner for model in models if key in model.model_fields for inner in _tables(model, key)]
    return models


def _fields_beside(place: Sequence[str], root: type[BaseModel]) -> dict[str, FieldInfo]:
    models = tables_at(place[:-1], root)
    return {name: field for model in models for name, field in model.model_fields.items()}


def _tables(model: type[BaseModel], key: str) -> Iterator[type[BaseModel]]:
    pending: list[object] = [model.model_fields[key].annotation]
    while pending:
        annotation = pending.pop()
        if annotation is FadingLaw:
            yield from FADING.values()
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        pending.extend(typing.get_args(annotation))
