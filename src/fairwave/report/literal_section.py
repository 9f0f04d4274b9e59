"""What goes wrong where a run follows the paper to the letter, in the run's own numbers."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairwave.extensions import SCHEMES
from fairwave.metrics.fairness import reward_correlation
from fairwave.report.statistics import has_classes, tested_measure
from fairwave.scenario.parameters import STORED, Scenario

if TYPE_CHECKING:
    import xarray as xr


def literal_section(results: xr.Dataset) -> str:
    """A list of what each literal reading does to this run; nothing where the run has none."""
    described = results.attrs.get("scenario")  # only stored results have one
    if described is None:
        return ""
    scenario = Scenario.model_validate(json.loads(described), context={STORED: True})
    found = list(consequences(scenario, results))
    if not found:
        return ""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in found)
    return f"<h3>Read to the letter: what goes wrong</h3><ul>{items}</ul>"


def consequences(scenario: Scenario, results: xr.Dataset) -> Iterator[str]:
    """One sentence for each reading of the paper's text that fairwave does not recommend, and what it did here."""
    privacy, learning = scenario.privacy, scenario.learning
    if not (privacy.overwrite_model or privacy.sensitivity_spread or learning.first_model == "zero"):
        return
    for scheme in map(str, results["scheme"].values):
        track = results.sel(scheme=scheme)
        noisy = bool(np.nanmax(_levels(track)) > 0.0)
        if privacy.overwrite_model and noisy:
            yield f"{scheme}: {_overwritten(track)}"
        if learning.first_model == "zero" and len(learning.layer_sizes) > 2:
            yield f"{scheme}: {_from_zero(track)}"
        if privacy.local_noise and noisy and (scheme not in SCHEMES or SCHEMES[scheme].noisy_updates):
            yield f"{scheme}: {_drowned(track, learning.num_parameters())}"
    if privacy.sensitivity_spread:
        yield _fluctuating(results)


def _levels(track: xr.Dataset) -> np.ndarray:
    """Noise std of a device without deviation, for each seed and round: the least that any copy had.

    Noise on updates has the same level.
    """
    return np.asarray(track["noise_std"].min("device").values, dtype=np.float64)


def _overwritten(track: xr.Dataset) -> str:
    """The noise of every round stays in the model."""
    levels = _levels(track)
    kept = float(np.sqrt(np.nansum(levels**2, axis=1)).mean())
    said = (
        f"the access point continues from its noisy model, so the noise of all {levels.shape[1]} rounds adds "
        f"up in it. It reaches a std of {kept:.3f} per parameter, {kept / np.nanmean(levels):.1f} times that "
        "of one release."
    )
    measure, in_words = tested_measure(track)
    known = track[measure].mean("seed").dropna("round")
    if not known.size:
        return said
    values, rounds = known.values, known["round"].values
    best = int(np.argmax(values) if has_classes(track) else np.argmin(values))
    return (
        f"{said} Its {in_words} is {values[-1]:.3f} at the end, and was {values[best]:.3f} at best, in round "
        f"{int(rounds[best])}."
    )


def _from_zero(track: xr.Dataset) -> str:
    """A network of zeros has no gradient but in its last bias."""
    norms = track["update_norm"].mean(("seed", "device")).values
    then = f", that of round 2 {norms[1]:.3g}" if norms.size > 1 else ""
    return (
        "training starts from zeros. There, a network of several layers has a gradient only in its last bias, "
        f"until noise moves the model. The mean update of round 1 has length {norms[0]:.3g}{then}."
    )


def _drowned(track: xr.Dataset, num_parameters: int) -> str:
    """The noise on updates is far longer than the updates."""
    noise = _levels(track)[..., None] * np.sqrt(num_parameters)
    ratios = noise / track["update_norm"].transpose("seed", "round", "device").values
    ratios = ratios[np.isfinite(ratios)]
    related = reward_correlation(track["local_iterations"].values.ravel(), track["deviation"].values.ravel())
    return (
        f"the noise on updates is {ratios.min():.0f} to {ratios.max():.0f} times as long as the updates. The "
        f"correlation of a device's iterations with its deviation is {related:+.2f}. A score that measures "
        "work would make it clearly negative."
    )


def _fluctuating(results: xr.Dataset) -> str:
    """The noise level follows a sensitivity that nothing bounds."""
    levels = results["noise_std"].min("device").values
    levels = levels[np.isfinite(levels) & (levels > 0.0)]
    span = f", here from {levels.min():.4f} to {levels.max():.4f}" if levels.size else ""
    return (
        f"The sensitivity differs from round to round, and with it the least noise in a copy{span}. A "
        "sensitivity has to be a bound over all possible data: a value that is measured on the data at hand "
        "bounds nothing, and reveals something about them."
    )
