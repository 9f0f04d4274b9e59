"""The reference of the Python interface: mkdocstrings reads signatures and docstrings from the source."""

from __future__ import annotations

import fairwave

GROUPS = {
    "Run": ("simulate", "Simulation", "open_run", "Run", "plan", "load_scenario", "Scenario"),
    "Extend": (
        *("add", "Scheme", "Rule", "Updates", "Behaviour", "Defence", "Aggregator", "Model", "ModelKind"),
        *("DataSet", "DataSource", "FadingLaw", "Tracker"),
    ),
    "Follow training": ("Callback", "Training", "RoundValues"),
    "Errors": (
        *("FairwaveError", "ArgumentError", "ScenarioError", "StoreError", "OutputError", "SolveError"),
        *("FederationError", "AuditError"),
    ),
}
"""Every public name, by what it is for."""


def page() -> str:
    """The page of the reference, in the builder's syntax."""
    listed = {name for names in GROUPS.values() for name in names}
    missing = set(fairwave.__all__) - {"__version__"} ^ listed
    if missing:
        raise KeyError(
            f"docs/site/api.py: {', '.join(sorted(missing))} is in the page or in the package alone; list it"
        )
    lines = [
        "# Python interface",
        "",
        "Everything below can be imported from `fairwave`. The page is generated from the signatures and docstrings of",
        "the package.",
    ]
    for title, names in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", f"::: {_home(name)}", "    options:", "      heading_level: 3"]
    return "\n".join(lines) + "\n"


def _home(name: str) -> str:
    """The full name of the definition."""
    member = getattr(fairwave, name)
    return f"{member.__module__}.{member.__qualname__}"
