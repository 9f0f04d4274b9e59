"""The search for the paper's benchmark in words: what is unknown, what it may be read as, and the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from fairwave.metrics.paper_distance import CAP, LINE, PUBLISHED, Member
from fairwave.metrics.published import SHOWN_ROUNDS, Stated


@dataclasses.dataclass(frozen=True)
class Unknown:
    """Something that the paper does not say."""

    title: str
    values: Mapping[str, str]
    """What it may be read as, in words; a number speaks for itself."""


TRAINING = {
    "benchmark": Unknown(
        "power of the benchmark",
        {
            "max_power": "full power (max_power)",
            "amplifier_cap": "the bound is the amplifier's input (amplifier_cap)",
            "priced": "a price per iteration (priced)",
        },
    ),
    "noise": Unknown(
        "noise of the access point",
        {
            "draw_each": "true model kept, a draw per device",
            "one_copy": "true model kept, one noisy copy for the benchmark's devices",
            "overwrite": "model overwritten by its noisy version",
        },
    ),
    "update_noise": Unknown("noise on updates", {"on": "noise on updates", "off": "no noise on updates"}),
    "effort_fit": Unknown("effort fit", {name: f"effort fit '{name}'" for name in ("paper", "prior", "window")}),
}
"""What takes training of its own."""
AVERAGING = {
    "energy_rounds": Unknown("rounds that energies are averaged over", {}),
    "energy_spread": Unknown(
        "std of energy",
        {"of_means": "of the devices' means over rounds", "mean_of_rounds": "in each round, then the mean"},
    ),
    "loss_rounds": Unknown("rounds that losses are averaged over", {}),
    "loss_gap": Unknown(
        "gap in loss",
        {
            "ratio_of_means": "ratio of the means over rounds",
            "mean_of_gaps": "mean of the rounds' ratios",
            "last_round": "ratio in the last round",
        },
    ),
    "loss_spread": Unknown(
        "std of loss",
        {"mean": "mean over rounds", "peak": "largest of all rounds", "last_round": "in the last round"},
    ),
}
"""What is read off the same training in several ways."""
UNKNOWNS = {**TRAINING, **AVERAGING}
AS_NEAR = 0.05
"""Distances that differ by less tell nothing apart."""

DEFINITION = (
    "The paper states four numbers and draws six figures whose axes are known. A stated number gives the term "
    "|ln(ours / paper)| / ln(factor). The factor says how much ours may differ and still agree. It is our choice, and "
    "about as wide as the differences between seeds. For an axis, the term is how far the curves of both schemes leave "
    f"it at the worse end, divided by its height and by {LINE:g}, the width of a line. Agreement ends at a term of 1. "
    f"Terms are cut at {CAP:g}, so that one miss does not hide the rest. A value that is not finite counts as {CAP:g}. "
    "The distance is the root mean square of the ten terms. A member fits if no term exceeds 1. A member that fits "
    f"need not have the least distance. Figure 1 is always compared over the first {SHOWN_ROUNDS} rounds, which the "
    "paper shows."
)


def value_in_words(unknown: str, value: str) -> str:
    """What an unknown is read as."""
    return UNKNOWNS[unknown].values.get(value, f"{value} rounds" if value.isdecimal() else value)


def training_in_words(member: Member) -> str:
    """How the member trains."""
    return "; ".join(value_in_words(name, member.readings[name]) for name in TRAINING)


def averaging_in_words(member: Member) -> str:
    """How the member averages."""
    said = {name: value_in_words(name, member.readings[name]) for name in AVERAGING}
    return (
        f"energies over {said['energy_rounds']}, std: {said['energy_spread']}; losses over {said['loss_rounds']}, "
        f"gap: {said['loss_gap']}, std: {said['loss_spread']}"
    )


def published_in_words(name: str) -> str:
    """A stated number or a figure by what it is about."""
    published = PUBLISHED[name]
    if isinstance(published, Stated):
        return published.name
    variable = published.variable.removesuffix("_j").removesuffix("_bps").replace("_", " ")
    return f"figure {published.figure}: {variable}"


def misses_in_words(member: Member) -> str:
    """What it does not agree with, and by how much."""
    return ", ".join(f"{name.replace('_', ' ')} ({member.terms[name]:.1f})" for name in member.misses) or "nothing"


def paper_in_words(name: str) -> str:
    """What the paper has: the number as it is printed, or the axis."""
    published = PUBLISHED[name]
    if isinstance(published, Stated):
        return published.printed
    return f"{published.low:g} to {published.high:g} {published.unit}".strip()


def ours_in_words(name: str, member: Member) -> str:
    """What we have, as the paper would print it."""
    published, ours = PUBLISHED[name], member.ours[name]
    if isinstance(published, Stated):
        return f"{100.0 * (ours[0] - 1.0):+.2f} %" if "%" in published.printed else f"{ours[0]:.3f}"
    low, high = (published.per_unit * end for end in ours)
    return f"{low:.4g} to {high:.4g} {published.unit}".strip()


def best_member(ranking: Sequence[Member]) -> Member:
    """The nearest of those that fit; if none does, the nearest of all."""
    return next((member for member in ranking if member.fits), ranking[0])


def answer(ranking: Sequence[Member], total: int) -> str:
    """Whether any of the members fits everything, and which is best."""
    fitting, best = sum(member.fits for member in ranking), best_member(ranking)
    if fitting:
        return (
            f"{fitting} of {total:,} members {'fits' if fitting == 1 else 'fit'} everything that the paper publishes. "
            f"The nearest of them (distance {best.distance:.2f}) reads the paper as follows: "
            f"{training_in_words(best)}; {averaging_in_words(best)}."
        )
    return (
        f"None of {total:,} members fits everything that the paper publishes. The nearest member (distance "
        f"{best.distance:.2f}) misses {misses_in_words(best)}. It reads the paper as follows: "
        f"{training_in_words(best)}; {averaging_in_words(best)}.{_as_near(ranking, best)}"
    )


def _as_near(ranking: Sequence[Member], best: Member) -> str:
    """Which unknowns the paper does not tell apart: another value is as near, up to what seeds may change."""
    open_still = [
        UNKNOWNS[name].title
        for name in UNKNOWNS
        if any(
            member.readings[name] != best.readings[name] and member.distance - best.distance < AS_NEAR
            for member in ranking
        )
    ]
    if not open_still:
        return ""
    return f" Other readings of some unknowns come as near, within {AS_NEAR:g}: {', '.join(open_still)}."


def best_of_each_training(ranking: Sequence[Member]) -> list[Member]:
    """For every reading of the training, the member whose averages come nearest; the nearest first."""
    found: dict[tuple[str, ...], Member] = {}
    for member in ranking:
        found.setdefault(tuple(member.readings[name] for name in TRAINING), member)
    return list(found.values())


def best_with(ranking: Sequence[Member], unknown: str) -> dict[str, Member]:
    """For every value of an unknown, the nearest member that has it."""
    found: dict[str, Member] = {}
    for member in ranking:
        found.setdefault(member.readings[unknown], member)
    known = list(UNKNOWNS[unknown].values)
    return dict(sorted(found.items(), key=lambda item: known.index(item[0]) if item[0] in known else int(item[0])))
