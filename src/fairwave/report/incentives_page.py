"""The answer to 'does cheating pay?': one page with a verdict, a heat map and a table."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fairwave.metrics.advantage import Advantage
from fairwave.metrics.intervals import interval
from fairwave.report.heat_tables import heat_map_html
from fairwave.report.page import write_study
from fairwave.report.static_figures import FIGURES, write_heat_map
from fairwave.report.style import with_interval
from fairwave.report.tables import Sheet

Answers = Mapping[tuple[str, str], Sequence[Advantage]]
"""The advantage of each behaviour in each setting, seed by seed."""
HARDLY, CHEAP, NOTHING = 0.01, 0.05, 0.005
"""Loss that is hardly worse, energy that is worth saving, and energy that is not saved by cheating, as shares."""
_HEADS = (
    "behaviour",
    "setting",
    "its loss against the others'",
    "against its honest self's",
    "its accuracy less theirs",
    "energy saved",
    "its deviation",
    "the others'",
    "caught",
    "false alarms",
    "what it costs the others",
)


def write_incentives(
    answers: Answers, behaviours: Sequence[str], settings: Sequence[str], judged: str, about: str, folder: Path
) -> Path:
    """Write the page; `judged` is the setting that the verdict is about."""
    gaps = np.array([[100.0 * _mean(answers[b, s], "loss_gap") for s in settings] for b in behaviours])
    texts = [[_cell(answers[behaviour, setting]) for setting in settings] for behaviour in behaviours]
    caption = (
        "The map shows the loss of the misbehaving device's model against the mean of the others (red: it is "
        "worse off), and the energy that it saves. Values are means over seeds."
    )
    rows = [_row(b, s, answers[b, s]) for b in behaviours for s in settings]
    pieces = (
        f"<h2>Verdict</h2><p><strong>{html.escape(verdict(answers, behaviours, judged))}</strong></p>",
        f'<h3>Loss and energy</h3><p class="caption">{caption}</p>',
        heat_map_html(behaviours, settings, gaps, texts, "loss (%)"),
        Sheet("incentives", "In numbers", "Means over seeds with 95 % intervals.", _HEADS, rows),
    )
    write_heat_map(behaviours, settings, gaps, texts, "incentives", folder / FIGURES)
    return write_study(
        folder, title="fairwave: does cheating pay?", opening=about, pieces=pieces, conclusions=_CONCLUSIONS
    )


def better_off(answers: Answers, behaviours: Sequence[str], setting: str) -> list[str]:
    """Behaviours with a better model for less energy than the others have, on average over seeds."""
    return [
        name
        for name in behaviours
        if _mean(answers[name, setting], "loss_gap") < 0.0 < _mean(answers[name, setting], "energy_saved")
    ]


def paying(answers: Answers, behaviours: Sequence[str], setting: str) -> list[str]:
    """The advantages that the same device would not have had by being honest."""
    return [
        name
        for name in better_off(answers, behaviours, setting)
        if _mean(answers[name, setting], "loss_gained") < 0.0
        and _mean(answers[name, setting], "energy_gained") > NOTHING
    ]


def nearly_paying(answers: Answers, behaviours: Sequence[str], setting: str) -> list[str]:
    """Behaviours that save much for a model that is hardly worse than the others'."""
    return [
        name
        for name in behaviours
        if 0.0 <= _mean(answers[name, setting], "loss_gap") < HARDLY
        and _mean(answers[name, setting], "energy_gained") >= CHEAP
    ]


def verdict(answers: Answers, behaviours: Sequence[str], judged: str) -> str:
    """The answer in a sentence or two, and nothing left out."""
    found, above = paying(answers, behaviours, judged), better_off(answers, behaviours, judged)

    def named(names: Sequence[str]) -> str:
        return "; ".join(f"{name} ({_cell(answers[name, judged])})" for name in names)

    if found:
        answer = f"Under '{judged}' it does for {named(found)}: a better model for less energy than the others have."
    elif above:
        answer = f"Under '{judged}' no: nobody has both a better model and lower energy than by being honest."
    else:
        answer = f"Under '{judged}' no: nobody who misbehaves has both a better model and lower energy than the others."
    others = (
        (
            "Better off than the others on both counts, but not than its honest self",
            [n for n in above if n not in found],
        ),
        (f"Nearly as good a model for {CHEAP:.0%} less energy or more has", nearly_paying(answers, behaviours, judged)),
        ("There is no result for", [n for n in behaviours if np.isnan(_mean(answers[n, judged], "loss_gap"))]),
    )
    return answer + "".join(f" {words}: {named(names)}." for words, names in others if names)


def _mean(seeds: Sequence[Advantage], name: str) -> float:
    """Over the seeds in which something is known."""
    known = [value for one in seeds if not np.isnan(value := getattr(one, name))]
    return float(np.mean(known)) if known else float("nan")


def _cell(seeds: Sequence[Advantage]) -> str:
    return f"{100 * _mean(seeds, 'loss_gap'):+.1f} % loss, {100 * _mean(seeds, 'energy_saved'):+.1f} % saved"


def _row(behaviour: str, setting: str, seeds: Sequence[Advantage]) -> list[str]:
    def per_cent(values: list[float], digits: int = 1) -> str:
        return with_interval(interval(np.array(values) * 100.0), digits) + " %"

    return [
        behaviour,
        setting,
        per_cent([one.loss_gap for one in seeds]),
        per_cent([one.loss_gained for one in seeds]),
        per_cent([one.cheats.received_accuracy - one.honest.received_accuracy for one in seeds]),
        per_cent([one.energy_saved for one in seeds]),
        with_interval(interval([one.cheats.deviation for one in seeds]), 2),
        with_interval(interval([one.honest.deviation for one in seeds]), 2),
        per_cent([one.detection_rate for one in seeds], 0),
        per_cent([one.false_alarm_rate for one in seeds], 2),
        per_cent([one.harm for one in seeds]),
    ]


_CONCLUSIONS = (
    "A device that misbehaves stands in the middle of the cell, and the others are nearer or farther. "
    "Under max_power and cgsv, energy depends on distance, so small savings there come from distance.",
    "Only known behaviours are listed. A device could predict the next update of all from data that it "
    "does not use honestly. It would pass every check on directions, and only tests on the access point's "
    "own samples (held_out) would detect it.",
    "Energy comes from the paper's model. No battery was measured.",
)
