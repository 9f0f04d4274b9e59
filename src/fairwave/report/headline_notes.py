"""Why our numbers may differ from the paper's headlines."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.published import SHOWN_ROUNDS
from fairwave.metrics.uploads import uploading
from fairwave.report.averaging import PROPOSED, last_shown_round
from fairwave.report.headlines import benchmarks
from fairwave.report.style import counted

if TYPE_CHECKING:
    import xarray as xr

_BENCHMARKS = {
    "max_power": "This is the benchmark as the paper words it, read as full power. In the paper's cell its energy "
    "leaves the axes of the paper's figures. The cut of mean energy is therefore far larger than the paper's.",
    "amplifier_cap": "This is the benchmark with its power bound read as amplifier input. It has no fitted number. The "
    "paper does not say which power its benchmark uses.",
    "priced": "This is the benchmark with a price per iteration. In the paper's cell the price was chosen to give the "
    "paper's cut of mean energy. Agreement there is therefore no evidence.",
}
_LOSS = (
    "The loss gap depends on how the benchmark's noise is drawn. With a draw for each device, spreads are similar, as "
    "the paper says. With one draw for all (privacy.broadcast), devices jointly fit the noise that they share. The "
    "benchmark's device losses then fall, and the gap widens."
)
_LOSS_STD = (
    "The paper does not say over which rounds it took the std of the loss. In the paper's cell it peaks while the loss "
    "falls fastest, and shrinks afterwards."
)


def headline_notes(results: xr.Dataset) -> list[str]:
    """Reasons that apply to the benchmarks of a run, one paragraph each."""
    bases = benchmarks(results)
    if not bases:
        return []
    about = [f"{base}: {_BENCHMARKS[base]}" for base in bases if base in _BENCHMARKS]
    span = f"Losses are over {counted(last_shown_round(results), 'round')}; figure 1 of the paper shows {SHOWN_ROUNDS}."
    return [*about, *deep_fades(results), f"{span} {_LOSS}", _LOSS_STD]


def deep_fades(results: xr.Dataset) -> list[str]:
    """How much of the proposed scheme's energy spread may be luck with one round, as a sentence."""
    energy = results["energy_j"].where(uploading(results)).sel(scheme=PROPOSED).transpose("seed", "round", "device")
    with warnings.catch_warnings():  # devices that never uploaded
        warnings.simplefilter("ignore", RuntimeWarning)
        above = (np.nanmax(energy.values, axis=1) - np.nanmedian(energy.values, axis=1)) / energy.notnull().sum("round")
    worst_mj = 1e3 * above.max("device").values
    if not np.isfinite(worst_mj).any():
        return []
    least, most = f"{np.nanmin(worst_mj):.1f}", f"{np.nanmax(worst_mj):.1f}"
    much = f"{most} mJ" if least == most else f"{least} mJ in one seed and {most} mJ in another"
    return [
        "In a deep fade, a far device has to send at full power for a long time, whatever it prefers. The costliest "
        "round of a device, compared with its median round, raises its mean energy under "
        f"{PROPOSED} by at most {much}."
    ]
