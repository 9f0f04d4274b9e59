"""Everything that scenarios and commands can name, with its summary, read from the registries."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

from fairwave.extensions import ALL
from fairwave.registry import Registry
from fairwave.scenario.loading import preset_names, preset_summary

TITLES = {
    "schemes": (
        "Schemes",
        "A scheme says how devices plan, how updates are combined and what is released. `--schemes` names them.",
    ),
    "rules": (
        "Rules",
        "A rule chooses the iterations and the transmit power of one device. `fairwave plan --policies` names them.",
    ),
    "behaviours": (
        "Behaviours",
        "A behaviour is a way in which a device misbehaves. `cheating.adversaries` names them.",
    ),
    "defences": (
        "Defences",
        "A defence is what the access point does about updates that it distrusts. `defences.use` names them.",
    ),
    "aggregators": ("Aggregators", "An aggregator makes one step of all updates. `defences.aggregator` names one."),
    "models": ("Models", "`learning.model` names the model that is trained."),
    "features": ("Features", "`learning.features` names what devices compute from their inputs before training."),
    "data": ("Data sources", "`data.source` names one of these, or a file, a folder or a Hugging Face data set."),
    "fading": ("Fading laws", "`radio.fading` has one of these as its `law`."),
    "privacy_modes": ("Privacy modes", "`privacy.mode` names what is proved about privacy."),
    "accountants": ("Accountants", "An accountant computes epsilon from the ledger of a run."),
    "trackers": ("Trackers", "`fairwave run --track` names a program that is told of every round."),
}


def page() -> str:
    """The page of the reference."""
    lines = [
        "# Names",
        "",
        "This page lists everything that a scenario or a command can name. It is generated from the registries of the",
        "package. [Extend fairwave](../extending.md) says how to add your own.",
        "",
        "## Presets",
        "",
        "A preset is a scenario that comes with the package.",
        "",
        "| Name | What it is |",
        "| --- | --- |",
        *(f"| `{name}` | {_cell(preset_summary(name))} |" for name in preset_names()),
    ]
    for group, registry in ALL.items():
        title, said = TITLES[group]
        lines += ["", f"## {title}", "", said, "", *_table(registry)]
    return "\n".join(lines) + "\n"


def _table(registry: Registry[Any]) -> list[str]:
    rows = ["| Name | What it is |", "| --- | --- |"]
    return rows + [f"| `{name}` | {_cell(summary(registry[name]))} |" for name in registry.builtin_names()]


def summary(member: Any) -> str:
    """The summary of a member, or the first paragraph of the docstring of one that has none."""
    said = getattr(member, "summary", "") or inspect.getdoc(member) or ""
    return textwrap.shorten(said.split("\n\n")[0], 1000)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("_", "\\_")
