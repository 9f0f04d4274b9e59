"""The paper's headlines beside ours, against every benchmark of a run, and whether any benchmark gives all of them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from fairwave.metrics.intervals import Interval
from fairwave.metrics.published import ENERGY_STD, LOSS_STD, MEAN_ENERGY, MEAN_LOSS, Stated
from fairwave.report.averaging import PROPOSED, energy_spreads, loss_gaps, loss_spreads
from fairwave.report.statistics import common_rounds, mean_over_rounds, relative_change
from fairwave.report.style import with_interval

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True)
class Headline:
    """A number that the paper states, and ours."""

    stated: Stated
    base: str | None
    """The benchmark that the proposed scheme is compared with; none where the number is of that scheme alone."""
    ways: tuple[Interval, ...]
    """Ours, in each way that the paper may have averaged, the most usual first; changes in per cent."""

    @property
    def claim(self) -> str:
        """What is claimed, against whom."""
        return f"{subject(self.stated)} against {self.base}" if self.base else subject(self.stated)

    @property
    def measured(self) -> Interval:
        """Ours, averaged in the most usual way."""
        return self.ways[0]

    @property
    def agrees(self) -> bool:
        """Whether one of the ways gives what the paper states."""
        return any(self.stated.agrees(way.mean / 100.0 + 1.0 if self.base else way.mean) for way in self.ways)

    def text(self) -> str:
        """Ours, with its interval over seeds."""
        return with_interval(self.measured, 2, unit=" %") if self.base else with_interval(self.measured)

    def brief(self) -> str:
        """Ours without its interval."""
        return f"{self.measured.mean:+.2f} %" if self.base else f"{self.measured.mean:.3f}"


def subject(stated: Stated) -> str:
    """What a stated number is of, such as 'mean device energy'."""
    return stated.name.partition(",")[0]


def benchmarks(results: xr.Dataset) -> list[str]:
    """All schemes of a run that the proposed one can be compared with; none if the run is without it."""
    names = [str(name) for name in results["scheme"].values]
    return [name for name in names if name != PROPOSED] if PROPOSED in names else []


def headlines(results: xr.Dataset) -> list[Headline]:
    """All numbers that the paper states, against all benchmarks of the run, then those without a benchmark."""
    if PROPOSED not in results["scheme"].values:
        return []
    found = []
    for base in benchmarks(results):
        energy = mean_over_rounds(common_rounds(results, PROPOSED, base), "energy_j").mean("device")
        found += [
            Headline(ENERGY_STD, base, tuple(energy_spreads(results, base).values())),
            Headline(MEAN_ENERGY, base, (relative_change(energy, PROPOSED, base),)),
            Headline(MEAN_LOSS, base, tuple(loss_gaps(results, base).values())),
        ]
    return [*found, Headline(LOSS_STD, None, tuple(loss_spreads(results, PROPOSED).values()))]


def missed(found: list[Headline], base: str) -> list[Headline]:
    """The headlines that a benchmark does not give, in whatever way one averages."""
    return [each for each in found if each.base == base and not each.agrees]


def verdict(found: list[Headline]) -> list[str]:
    """Whether one benchmark gives all headlines, and what each of the others misses, in sentences."""
    bases = list(dict.fromkeys(each.base for each in found if each.base))
    if not bases:
        return []
    if any(math.isnan(each.measured.mean) for each in found):
        return ["Not all of the paper's headlines have a value in this run, so that no benchmark can give all of them."]
    alone = [each for each in found if each.base is None and not each.agrees]
    misses = {base: missed(found, base) for base in bases}
    full = [base for base in bases if not misses[base] and not alone]
    sentences = [f"{base} gives all headlines of the paper." for base in full]
    sentences = sentences or ["No single benchmark gives all headlines of the paper."]
    sentences += [f"{base} misses {_listed(missing)}." for base, missing in misses.items() if missing]
    if alone:
        sentences += [f"{base} gives those that compare schemes." for base, missing in misses.items() if not missing]
        sentences.append(f"Whatever the benchmark, {PROPOSED} misses {_listed(alone)}.")
    return sentences


def _listed(missing: list[Headline]) -> str:
    return ", ".join(f"{subject(each.stated)} (paper {each.stated.printed}, here {each.brief()})" for each in missing)
