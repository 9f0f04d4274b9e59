"""fairwave: utility-fair, differentially private federated learning over a wireless cell.

Everything that a program needs is here; nothing heavy is imported until it is used, so that `fairwave --help` answers
at once. To run: `simulate`, `plan`, `open_run`, `load_scenario`. To extend: `Scheme`, `Rule`, `Behaviour`, `Defence`,
`Aggregator`, `Model`, `ModelKind`, `DataSet`, `DataSource`, `FadingLaw`, `Tracker`, and `add`. To follow training:
`Callback`, which is told of a `Training` and its `RoundValues`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from fairwave.errors import (
    ArgumentError,
    AuditError,
    FairwaveError,
    FederationError,
    OutputError,
    ScenarioError,
    SolveError,
    StoreError,
)

if TYPE_CHECKING:
    from fairwave.adversaries.behaviour import Behaviour
    from fairwave.aggregators.aggregator import Aggregator
    from fairwave.data.sources import DataSet, DataSource
    from fairwave.defences.defence import Defence
    from fairwave.extensions import add
    from fairwave.learning.model import Model
    from fairwave.learning.models import ModelKind
    from fairwave.planner.plan import plan
    from fairwave.policy.rule import Rule
    from fairwave.policy.updates import Updates
    from fairwave.runs.open_run import Run, open_run
    from fairwave.runs.simulate import Simulation, simulate
    from fairwave.scenario.fading_laws import FadingLaw
    from fairwave.scenario.loading import load_scenario
    from fairwave.scenario.parameters import Scenario
    from fairwave.schemes.scheme import Scheme
    from fairwave.trackers.callback import Callback, RoundValues, Training
    from fairwave.trackers.tracker import Tracker

    __version__: str

_HOME = {
    "Aggregator": "fairwave.aggregators.aggregator",
    "Behaviour": "fairwave.adversaries.behaviour",
    "Callback": "fairwave.trackers.callback",
    "DataSet": "fairwave.data.sources",
    "DataSource": "fairwave.data.sources",
    "Defence": "fairwave.defences.defence",
    "FadingLaw": "fairwave.scenario.fading_laws",
    "Model": "fairwave.learning.model",
    "ModelKind": "fairwave.learning.models",
    "RoundValues": "fairwave.trackers.callback",
    "Rule": "fairwave.policy.rule",
    "Run": "fairwave.runs.open_run",
    "Scenario": "fairwave.scenario.parameters",
    "Scheme": "fairwave.schemes.scheme",
    "Simulation": "fairwave.runs.simulate",
    "Tracker": "fairwave.trackers.tracker",
    "Training": "fairwave.trackers.callback",
    "Updates": "fairwave.policy.updates",
    "add": "fairwave.extensions",
    "load_scenario": "fairwave.scenario.loading",
    "open_run": "fairwave.runs.open_run",
    "plan": "fairwave.planner.plan",
    "simulate": "fairwave.runs.simulate",
}

__all__ = [
    "Aggregator",
    "ArgumentError",
    "AuditError",
    "Behaviour",
    "Callback",
    "DataSet",
    "DataSource",
    "Defence",
    "FadingLaw",
    "FairwaveError",
    "FederationError",
    "Model",
    "ModelKind",
    "OutputError",
    "RoundValues",
    "Rule",
    "Run",
    "Scenario",
    "ScenarioError",
    "Scheme",
    "Simulation",
    "SolveError",
    "StoreError",
    "Tracker",
    "Training",
    "Updates",
    "__version__",
    "add",
    "load_scenario",
    "open_run",
    "plan",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("fairwave")
    if name not in _HOME:
        raise AttributeError(f"module 'fairwave' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
