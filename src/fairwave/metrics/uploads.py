"""Which rounds count in what devices spend."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def uploading(results: xr.Dataset) -> xr.DataArray:
    """Rounds in which a device took part and was not in outage: those that energies are averaged over."""
    return (results["participating"] == 1) & (results["outage"] == 0)
