"""A warning where a rule gives devices worse copies because their data are rare."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.rare_data import holds_rare_data

if TYPE_CHECKING:
    import xarray as xr

PUNISHED = 0.1
"""Deviation by which devices with rare data exceed the other honest devices before the page warns."""


def rare_data_section(results: xr.Dataset) -> str:
    """A warning for every scheme that it concerns; nothing where classes are alike or not known."""
    if results.sizes["class"] < 2:
        return ""
    rare = np.stack([holds_rare_data(held) for held in results["samples"].values])
    if not rare.any():
        return ""
    return "".join(
        f"<p><strong>{html.escape(_warning(scheme, *found))}</strong></p>"
        for scheme in map(str, results["scheme"].values)
        if (found := _deviations(results, scheme, rare)) is not None
    )


def _deviations(results: xr.Dataset, scheme: str, rare: np.ndarray) -> tuple[float, float] | None:
    """Mean deviation of honest devices with rare data and of the others; None where they are treated alike."""
    one = results.sel(scheme=scheme).transpose("seed", "round", "device", ...)
    honest = (one["participating"].values == 1) & ~(one["cheating"].fillna(0).values == 1)
    deviation = one["deviation"].values
    means = []
    for group in (rare, ~rare):
        values = deviation[honest & group[:, None, :] & np.isfinite(deviation)]
        if not values.size:
            return None
        means.append(float(values.mean()))
    return (means[0], means[1]) if means[0] - means[1] > PUNISHED else None


def _warning(scheme: str, rare: float, others: float) -> str:
    return (
        f"{scheme} gives worse copies to devices whose classes are rare in the cell: their mean deviation is "
        f"{rare:.2f}, that of the other honest devices {others:.2f}. They did not work less. "
        "privacy.similarity = 'training' compares a device with training from its own copy instead of with the others."
    )
