"""Values of a scenario that name something from a registry. An object of that kind is accepted too."""

from __future__ import annotations

from typing import Any

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticKnownError

from fairwave.registry import Registry


def named(registry: Registry[Any]) -> BeforeValidator:
    """Accept a name, or an object that the registry can take: it is added there, and its name is kept."""

    def name_of(value: Any) -> Any:
        return registry.name_of(value) if getattr(value, "extends", None) == registry.group else value

    return BeforeValidator(name_of)


def known(registry: Registry[Any]) -> AfterValidator:
    """Refuse a name that the registry does not have, with the names that it has."""

    def check(name: str) -> str:
        if name not in registry:
            *rest, last = (f"'{each}'" for each in registry)
            raise PydanticKnownError("literal_error", {"expected": f"{', '.join(rest)} or {last}"})
        return name

    return AfterValidator(check)
