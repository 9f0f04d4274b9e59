"""A validation error in one line: where, what, remedy."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fairwave.errors import did_you_mean
from fairwave.scenario.fields import keys_beside, tables_at

ADD = "add it"
LONGEST = 60
"""Characters of a value that are shown."""


def one_line(error: ValidationError, root: type[BaseModel], if_missing: str = ADD) -> str:
    """The first problem of a failed validation, and how many more there are.

    `if_missing` is the remedy for a table, or a key of one, that is not there.
    """
    # A misspelt key first: it is often the reason why another one is missing.
    details = sorted(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    place = _place(details[0])
    if not place:
        return f"{_message(details[0])}{more}"
    return f"{'.'.join(place)}: {_what(details[0], place, root, if_missing)}{more}"


def _place(detail: ErrorDetails) -> list[str]:
    """Keys as the user wrote them: without the law that pydantic puts between a tagged table and its key."""
    place = [str(part) for part in detail["loc"]]
    return [
        key
        for index, key in enumerate(place)
        if not (index == 2 and place[1] in ("placement", "mobility", "partition"))
    ]


def _what(detail: ErrorDetails, place: list[str], root: type[BaseModel], if_missing: str) -> str:
    match detail["type"]:
        case "extra_forbidden":
            return f"unknown key; {did_you_mean(place[-1], keys_beside(place, root))}"
        case "missing":
            return f"missing; {ADD if len(place) > 2 else if_missing}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{_short(detail['input'])} is not a table; {_as_table(place, root)}"
        case "tuple_type":
            return f"{_short(detail['input'])} is not a list; {_as_list(detail['input'], place, root)}"
        case "string_type" | "path_type":
            return f"{_short(detail['input'])} is not text; write it in quotes"
        case "bool_parsing" | "bool_type":
            return f"{_short(detail['input'])} is neither true nor false; write one of them, without quotes"
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


def _as_table(place: list[str], root: type[BaseModel]) -> str:
    """How a table is written: one in a list has its keys in braces, since TOML cannot name it by its number."""
    if not place[-1].isdecimal():
        return f"write it as [{'.'.join(place)}] with keys"
    return f"write it as {_braces(place, root)}"


def _as_list(given: object, place: list[str], root: type[BaseModel]) -> str:
    """How a list is written, of tables or of whatever was given."""
    if tables_at(place, root):
        return f"write a table for each member, as in [{_braces(place, root)}]"
    example = f'["{given}"]' if isinstance(given, str) else f"[{given}]"
    return f"write it in brackets, as in {example}" if len(example) <= LONGEST else "write it in brackets"


def _braces(place: list[str], root: type[BaseModel]) -> str:
    """The keys that a table cannot do without."""
    needed = [
        name for model in tables_at(place, root) for name, field in model.model_fields.items() if field.is_required()
    ]
    return "{ " + ", ".join(f"{name} = ..." for name in needed) + " }"


def _message(detail: ErrorDetails) -> str:
    return detail["msg"].removeprefix("Value error, ").replace("\n", " ")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
