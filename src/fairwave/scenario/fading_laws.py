"""The law of block fading in a scenario: `{ law = NAME, ... }`, with the parameters that the law of that name has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import GetJsonSchemaHandler, SerializeAsAny, WrapValidator
from pydantic_core import CoreSchema, PydanticKnownError

from fairwave.errors import ArgumentError
from fairwave.extensions import FADING
from fairwave.scenario.group import Group

if TYPE_CHECKING:
    from jaxtyping import Array, Float

    from fairwave.types import Key, Scalar


class FadingLaw(Group):
    """One law: its parameters as fields, and how it draws the power gain of one device in one round.

    A law from outside the package is a subclass with `name`, a field `law` with that name as its only value, and the
    methods below.
    """

    extends: ClassVar[str] = "fading"
    name: ClassVar[str]
    scattered: ClassVar[bool] = False
    """The gain follows from a scattered field (`gain_of_field`), which a Doppler shift can correlate over time."""

    law: str
    """This is the name of the law."""

    @property
    def mean_power(self) -> float:
        """Mean of the fading gain."""
        raise NotImplementedError

    def gain(self, key: Key) -> Scalar:
        """One draw of the power gain."""
        raise NotImplementedError

    def gain_of_field(self, field: Float[Array, " 2"]) -> Scalar:
        """The power gain for a scattered field of two standard normal parts."""
        raise NotImplementedError

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of one law; that of the field is any of them."""
        if cls is not FadingLaw:
            return handler(schema)
        return {"oneOf": [law.model_json_schema() for law in FADING.values()]}


def _of_its_law(value: Any, handler: Any) -> FadingLaw:
    """Check a table by the law that it names."""
    if isinstance(value, FadingLaw):
        if value.name not in FADING:
            FADING.add(type(value), value.name)
        return value
    if not isinstance(value, dict):
        handled: FadingLaw = handler(value)
        return handled
    name = value.get("law")
    if name is None:
        raise PydanticKnownError("union_tag_not_found", {"discriminator": "'law'"})
    try:
        law: type[FadingLaw] = FADING.get(str(name))
    except ArgumentError:
        known = ", ".join(f"'{each}'" for each in FADING)
        raise PydanticKnownError(
            "union_tag_invalid", {"discriminator": "'law'", "tag": str(name), "expected_tags": known}
        ) from None
    return law.model_validate(value)


Fading = Annotated[SerializeAsAny[FadingLaw], WrapValidator(_of_its_law)]
