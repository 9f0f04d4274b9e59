"""The base of every table in a scenario."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """Strict and frozen: an unknown key is an error, never a silently ignored wish."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
