"""Which of the models that a run trains stay in it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

LONGEST_RUN = 1_000_000
"""Most communication rounds."""


def _checked(value: Any) -> Any:
    """A value that says which models stay."""
    if value in ("last", "all") or (type(value) is int and 1 <= value <= LONGEST_RUN):
        return value
    raise ValueError(f"{value!r} is no choice; give 'last', 'all', or a number of rounds from 1, such as 10")


KeepModels: TypeAlias = Annotated[
    Literal["last", "all"] | int,
    BeforeValidator(_checked),
    WithJsonSchema({"anyOf": [{"enum": ["last", "all"]}, {"type": "integer", "minimum": 1, "maximum": LONGEST_RUN}]}),
]
"""That of the last round, those of all, or one of so many rounds."""


def keeps(keep: KeepModels, number: int) -> bool:
    """Whether the model of a round, counted from 0, stays once later ones are stored."""
    if keep == "last":
        return False
    return keep == "all" or (number + 1) % int(keep) == 0
