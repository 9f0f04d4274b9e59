"""The paper's headlines beside ours, against every benchmark of a run, and whether any benchmark gives all of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairwave.metrics.intervals import Interval
from fairwave.metrics.published import ENERGY_STD, LOSS_STD, MEAN_ENERGY, MEAN_LOSS, Stated
from fairwave.report.averaging import PROPOSED, energy_spreads, in_words, loss_gaps, loss_spreads
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
    ways: Mapping[str, Interval]
    """Ours, in each way that the paper may have averaged, the most usual first; changes in per cent."""

    @property
    def claim(self) -> str:
        """What is claimed, against whom."""
        return f"{subject(self.stated)} against {self.base}" if self.base else subject(self.stated)

    @property
    def measured(self) -> Interval:
        """Ours, averaged in the most usual way."""
        return next(iter(self.ways.values()))

    @property
    def agreeing(self) -> list[str]:
        """The ways that give what the paper states."""
        return [
            name
            for name, way in self.ways.items()
            if self.stated.agrees(way.mean / 100.0 + 1.0 if self.base else way.mean)
        ]

    def text(self) -> str:
        """Ours, with its interval over seeds."""
        return with_interval(self.measured, 2, unit=" %") if self.base else with_interval(self.measured)

    def brief(self, way: str | None = None) -> str:
        """Ours without its interval, in one way or in the most usual."""
        mean = (self.ways[way] if way else self.measured).mean
        return f"{mean:+.2f} %" if self.base else f"{mean:.3f}"


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
            Headline(ENERGY_STD, base, _named(energy_spreads(results, base), results)),
            Headline(MEAN_ENERGY, base, {"mean": relative_change(energy, PROPOSED, base)}),
            Headline(MEAN_LOSS, base, _named(loss_gaps(results, base), results)),
        ]
    return [*found, Headline(LOSS_STD, None, _named(loss_spreads(results, PROPOSED), results))]


def missed(found: list[Headline], base: str) -> list[Headline]:
    """The headlines that a benchmark does not give, in whatever way one averages."""
    return [each for each in found if each.base == base and not each.agreeing]


def verdict(found: list[Headline]) -> list[str]:
    """Whether one benchmark gives all headlines, and what each of the others misses, in sentences."""
    bases = list(dict.fromkeys(each.base for each in found if each.base))
    if not bases:
        return []
    if any(math.isnan(each.measured.mean) for each in found):
        return ["Not all of the paper's headlines have a value in this run, so that no benchmark can give all of them."]
    alone = [each for each in found if each.base is None and not each.agreeing]
    misses = {base: missed(found, base) for base in bases}
    full = [base for base in bases if not misses[base] and not alone]
    sentences = [f"The comparison with {base} gives all headlines of the paper." for base in full]
    sentences = sentences or ["No single benchmark gives all headlines of the paper."]
    sentences += [
        f"The comparison with {base} misses {_listed(missing)}." for base, missing in misses.items() if missing
    ]
    if alone:
        gives = "gives all headlines that compare schemes"
        sentences += [f"The comparison with {base} {gives}." for base, missing in misses.items() if not missing]
        sentences.append(f"With every benchmark, {PROPOSED} misses {_listed(alone)}.")
    return sentences + [
        _only_as(each) for each in found if each.agreeing and next(iter(each.ways)) not in each.agreeing
    ]


def _named(ways: Mapping[Any, Interval], results: xr.Dataset) -> dict[str, Interval]:
    return {in_words(how, results): way for how, way in ways.items()}


def _only_as(headline: Headline) -> str:
    """How a headline is given that the most usual way of averaging does not give."""
    usual, given = next(iter(headline.ways)), headline.agreeing
    others = " or ".join(f"{way} ({headline.brief(way)})" for way in given)
    return (
        f"The {headline.claim} comes near the paper's value when it is taken as {others}. As {usual} it is "
        f"{headline.brief()}, which is not near."
    )


def _listed(missing: list[Headline]) -> str:
    return ", ".join(f"{subject(each.stated)} (paper {each.stated.printed}, here {each.brief()})" for each in missing)
