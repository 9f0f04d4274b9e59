"""Which plugins a run uses, and that they are what they were when it began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import StoreError
from fairwave.extensions import AGGREGATORS, BEHAVIOURS, DATA, DEFENCES, FADING, FEATURES, MODELS, RULES, SCHEMES
from fairwave.plugins import load_plugin
from fairwave.registry import Origin
from fairwave.runs.order import Order


def plugins_of(order: Order) -> list[Origin]:
    """Plugin files that the scenario names, and entry points that the order makes use of."""
    scenario = order.scenario
    found = [load_plugin(path) for path in scenario.plugins]
    used = [(SCHEMES, name) for name in order.schemes]
    used += [(RULES, SCHEMES[name].plan.name) for name in order.schemes]
    used += [(BEHAVIOURS, entry.behaviour) for entry in scenario.cheating.adversaries]
    used += [(DEFENCES, name) for name in scenario.defences.use] + [(AGGREGATORS, scenario.defences.aggregator)]
    used += [(MODELS, scenario.learning.model), (FEATURES, scenario.learning.features)]
    used += [(DATA, scenario.data.source), (FADING, scenario.radio.fading.name)]
    found += [origin for registry, name in used if (origin := registry.origin_of(name)) is not None]
    return sorted(set(found), key=lambda origin: origin.place)


def refuse_changed_plugins(folder: Path, stored: Sequence[Origin], order: Order) -> None:
    """A run goes on with the code that it was begun with, or not at all."""
    now = {origin.place: origin.digest for origin in plugins_of(order)}
    for origin in stored:
        if now.get(origin.place) != origin.digest:
            raise StoreError(
                f"{folder}: was begun with plugin {origin.place}, which has changed since; restore the old one, or "
                "start another run with --out"
            )
