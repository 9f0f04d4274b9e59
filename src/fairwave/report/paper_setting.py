"""Whether a run can be held against what the paper publishes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fairwave.privacy.modes.mode import mode_of
from fairwave.report.averaging import PROPOSED
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import STORED, Scenario

if TYPE_CHECKING:
    import xarray as xr

FEWEST_ROUNDS = 10
"""The paper's curves have hardly begun before."""
_GROUPS = ("cell", "radio", "compute", "data")


def is_beside_paper(results: xr.Dataset) -> bool:
    """Whether a run has the paper's cell, radio, devices, data and model, proves nothing, and has rounds enough.

    Its readings of what the paper leaves open may differ: these are what such a comparison is about.
    """
    if PROPOSED not in results["scheme"].values or results.sizes["round"] < FEWEST_ROUNDS:
        return False
    described = results.attrs.get("scenario")
    if described is None:  # made by hand: whoever made it knows what it is
        return True
    ours, papers = Scenario.model_validate(json.loads(described), context={STORED: True}), load_scenario("paper")
    same = all(getattr(ours, group) == getattr(papers, group) for group in _GROUPS)
    model = (ours.learning.model, ours.learning.layer_sizes) == (papers.learning.model, papers.learning.layer_sizes)
    return same and model and not mode_of(ours.privacy).proves
