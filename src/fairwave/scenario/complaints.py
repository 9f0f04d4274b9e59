"""A validation error in one line: where, what, remedy."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fairwave.errors import did_you_mean


def one_line(error: ValidationError, root: type[BaseModel]) -> str:
    """The first problem of a failed validation, and how many more there are."""
    # A misspelt key first: it is often the reason why another one is missing.
    details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    place = _place(details[0])
    return f"{'.'.join(place)}: {_what(details[0], place, root)}{more}" if place else f"{_message(details[0])}{more}"


def _place(detail: ErrorDetails) -> list[str]:
    """Keys as the user wrote them: without the law that pydantic puts between a tagged table and its key."""
    place = [str(part) for part in detail["loc"]]
    return [
        key
        for index, key in enumerate(place)
        if not (index == 2 and place[1] in ("placement", "mobility", "fading", "partition"))
    ]


def _what(detail: ErrorDetails, place: list[str], root: type[BaseModel]) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown key; {did_you_mean(place[-1], _siblings(place, root))}"
        case "missing":
            nested = len(place) > 2
            return "missing; add it" if nested else 'missing; add it, or start the file with extends = "paper"'
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{_short(detail['input'])} is not a table; write it as [{'.'.join(place)}] with keys"
        case "union_tag_not_found":
            return "no law given; add law = one of those in 'fairwave scenario schema'"
        case "union_tag_invalid":
            law = str(detail["ctx"]["tag"])
            known = [name.strip(" '") for name in str(detail["ctx"]["expected_tags"]).split(",")]
            return f"unknown law '{law}'; {did_you_mean(law, known)}"
        case "literal_error":
            return f"{_short(detail['input'])} is not a choice; expected {detail['ctx']['expected']}"
        case "value_error":
            return _message(detail)
        case _:
            return f"{_short(detail['input'])}: {_message(detail)}; see 'fairwave scenario schema'"


def _message(detail: ErrorDetails) -> str:
    return detail["msg"].removeprefix("Value error, ").replace("\n", " ")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _siblings(place: list[str], root: type[BaseModel]) -> set[str]:
    """Keys that would have been right at that place."""
    models: list[type[BaseModel]] = [root]
    for key in place[:-1]:
        if key.isdecimal():  # a place in a list, whose tables the list's key has led to
            continue
        models = [inner for model in models if key in model.model_fields for inner in _models(model, key)]
    return {name for model in models for name in model.model_fields}


def _models(model: type[BaseModel], field: str) -> Iterator[type[BaseModel]]:
    pending: list[object] = [model.model_fields[field].annotation]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield annotation
        pending.extend(typing.get_args(annotation))
