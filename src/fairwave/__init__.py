"""fairwave: utility-fair, differentially private federated learning over a wireless cell.

Nothing heavy is imported until it is used, so that `fairwave --help` answers at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairwave.planner.plan import plan
    from fairwave.runs.simulate import simulate
    from fairwave.scenario.loading import load_scenario
    from fairwave.scenario.parameters import Scenario

__all__ = ["Scenario", "load_scenario", "plan", "simulate"]

_HOME = {
    "Scenario": "fairwave.scenario.parameters",
    "load_scenario": "fairwave.scenario.loading",
    "plan": "fairwave.planner.plan",
    "simulate": "fairwave.runs.simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'fairwave' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
