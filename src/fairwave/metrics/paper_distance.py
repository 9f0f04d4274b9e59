"""How far a proposed scheme and a benchmark are from all that the paper publishes, as one number.

Each of the paper's four stated numbers and each of its six axes gives a term, and a term of 1 is where agreement ends:

* a stated number gives |ln(ours / paper)| / ln(factor), where ours may differ by the factor and still agree;
* an axis gives by how much the curves of both schemes leave it at the worse end, over its height, over a line's width.

Terms are cut at a cap, so that one miss does not hide the rest, and what is not finite counts as the cap. The distance
is the root mean square of all terms. A member fits if no term exceeds 1. A member that fits need not have the least
distance: another may meet nine of the ten exactly and miss one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from fairwave.metrics.published import AXES, ENERGY_STD, LOSS_STD, MEAN_ENERGY, MEAN_LOSS, Axis, Stated, axis_excess

CAP = 10.0
"""The largest that a term can be."""
LINE = 0.02
"""The width of a line over the height of an axis: curves may leave it by so much and still look as if they did not."""

Values: TypeAlias = tuple[float, ...]
"""What we measure: a number, or the lowest and the highest point of both curves of a figure, in SI units."""

NUMBERS: Mapping[str, Stated] = {
    "energy_std": ENERGY_STD,
    "mean_energy": MEAN_ENERGY,
    "mean_loss": MEAN_LOSS,
    "loss_std": LOSS_STD,
}
FIGURES: Mapping[str, Axis] = {f"figure_{axis.figure}": axis for axis in AXES}
PUBLISHED: Mapping[str, Stated | Axis] = {**NUMBERS, **FIGURES}
"""All that gives a term, by a short name."""


def term(published: Stated | Axis, ours: Values) -> float:
    """How far ours is from one published thing; at most 1 where they agree."""
    if not np.isfinite(ours).all():
        return CAP
    if isinstance(published, Axis):
        return min(axis_excess(published, np.array(ours)) / LINE, CAP)
    return min(published.distance(ours[0]), CAP)


@dataclasses.dataclass(frozen=True)
class Member:
    """One combination of readings, and what it gives."""

    readings: Mapping[str, str]
    """What each unknown is read as."""
    ours: Mapping[str, Values]
    """Ours for everything that is published, by its short name."""
    statements: Mapping[str, bool]
    """Whether each of the paper's statements about its curves holds; these are told, and do not count."""

    @functools.cached_property
    def terms(self) -> dict[str, float]:
        """One for everything that is published."""
        return {name: term(published, self.ours[name]) for name, published in PUBLISHED.items()}

    @functools.cached_property
    def distance(self) -> float:
        """The root mean square of all terms."""
        return math.sqrt(sum(size**2 for size in self.terms.values()) / len(self.terms))

    @property
    def misses(self) -> list[str]:
        """Short names of what it does not agree with."""
        return [name for name, size in self.terms.items() if size > 1.0]

    @property
    def fits(self) -> bool:
        """Whether it agrees with everything."""
        return not self.misses
