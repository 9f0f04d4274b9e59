"""A plan as a figure: energy, iterations and rate against path loss, the policies beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairwave.errors import OutputError
from fairwave.report.style import COLOURS, MARKERS, STATIC

if TYPE_CHECKING:
    import xarray as xr

FORMATS = (".svg", ".pdf", ".png")
_PANELS = (
    ("energy_j", 1e3, "energy per round (mJ)"),
    ("local_iterations", 1.0, "local iterations"),
    ("uplink_rate_bps", 1e-6, "uplink rate (Mbit/s)"),
)
_JOINED = 50
"""Devices up to which points are joined by lines."""
_MOST_POINTS = 4_000


def draw_plan(plan: xr.Dataset, path: Path) -> None:
    """Write the figure; the ending of the file's name says in which format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(STATIC):
        figure, axes = pyplot.subplots(1, len(_PANELS), figsize=(11, 3.6), layout="constrained")
        order = np.argsort(plan["path_loss_db"].values)
        few = order.size <= _JOINED
        if order.size > _MOST_POINTS:
            order = order[np.linspace(0, order.size - 1, _MOST_POINTS).astype(int)]
        loss_db = plan["path_loss_db"].values[order]
        for axis, (name, scale, label) in zip(axes, _PANELS, strict=True):
            for index, policy in enumerate(plan["policy"].values):
                # Policies may coincide: the first lies on top, the others show around it.
                axis.plot(
                    loss_db,
                    plan[name].sel(policy=policy).values[order] * scale,
                    color=COLOURS[index % len(COLOURS)],
                    marker=MARKERS[index % len(MARKERS)] if few else ".",
                    markersize=(4 if index == 0 else 6) if few else 2,
                    markerfacecolor=None if index == 0 else "none",
                    linestyle="-" if few else "none",
                    linewidth=1.6 if index == 0 else 1.2,
                    zorder=3 if index == 0 else 2,
                    label=str(policy),
                )
            axis.set_xlabel("path loss (dB)")
            axis.set_ylabel(label)
            axis.grid(alpha=0.3)
        axes[0].set_ylim(bottom=0.0)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
        try:
            figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None, dpi=150)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder") from None
        finally:
            pyplot.close(figure)
