"""What a plan says about fairness, policy by policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.metrics.fairness import fairness_summary

if TYPE_CHECKING:
    import xarray as xr


def energy_fairness(plan: xr.Dataset) -> dict[str, dict[str, float]]:
    """Spread of the devices' energy per round under each policy, in joules, as charged."""
    return {str(name): fairness_summary(plan["energy_j"].sel(policy=name).values) for name in plan["policy"].values}
