"""Which of the paper's statements about its curves hold for ours, against which benchmark."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from fairwave.metrics.published import BY_PATH_LOSS, SIMILAR_SPREADS, STATEMENTS, Curves, Statement, similar_spreads
from fairwave.report.averaging import PROPOSED, loss_spread_by_seed
from fairwave.report.headlines import benchmarks
from fairwave.report.statistics import common_rounds, in_order_of_path_loss, labelled, mean_over_rounds
from fairwave.report.tables import Sheet

if TYPE_CHECKING:
    import xarray as xr


def statements_sheet(results: xr.Dataset) -> Sheet:
    """Every statement against every benchmark: whether it holds, in how many seeds, and the numbers behind it."""
    bases = benchmarks(results)
    pairs = {base: common_rounds(results, PROPOSED, base) for base in bases}
    curves = {base: {name: _curves(results, pair, name) for name in (PROPOSED, base)} for base, pair in pairs.items()}
    rows = [
        (statement.text, *(_told(statement, curves[base][PROPOSED], curves[base][base]) for base in bases))
        for statement in STATEMENTS
    ]
    rows.append((SIMILAR_SPREADS, *(_spreads(pair, base) for base, pair in pairs.items())))
    caption = (
        "Curves are means over rounds, devices in the order of their path loss; the answer is that of the mean over "
        "seeds, and the std of the loss is the mean over the rounds that figure 1 of the paper shows. What counts as "
        "flat, slight, much or similar is ours, in brackets."
    )
    heads = ("the paper's statement", *(labelled(results, base) for base in bases))
    return Sheet("statements", "What the paper says of its curves", caption, heads, rows)


def _curves(results: xr.Dataset, pair: xr.Dataset, scheme: str) -> dict[str, np.ndarray]:
    """A scheme's curves by the name of the variable, seed by device."""
    return {
        name: in_order_of_path_loss(results, mean_over_rounds(pair, name)).sel(scheme=scheme).values
        for name in BY_PATH_LOSS
    }


def _told(statement: Statement, ours: dict[str, np.ndarray], base: dict[str, np.ndarray]) -> str:
    with warnings.catch_warnings():  # a device that never uploaded
        warnings.simplefilter("ignore", RuntimeWarning)
        mean = [{name: np.nanmean(values, axis=0) for name, values in each.items()} for each in (ours, base)]
    if np.isnan(statement.numbers(*mean)).any():
        return "no value"
    seeds = len(next(iter(ours.values())))
    by_seed = [statement.holds(_one(ours, seed), _one(base, seed)) for seed in range(seeds)]
    return _answer(statement.holds(*mean), by_seed, statement.evidence(*mean))


def _one(curves: dict[str, np.ndarray], seed: int) -> Curves:
    return {name: values[seed] for name, values in curves.items()}


def _spreads(pair: xr.Dataset, base: str) -> str:
    ours, theirs = (np.array(loss_spread_by_seed(pair, name, "mean")) for name in (PROPOSED, base))
    known = np.isfinite(ours) & np.isfinite(theirs)
    if not known.any():
        return "no value"
    by_seed = [similar_spreads(*each) for each in zip(ours[known], theirs[known], strict=True)]
    mean = float(ours[known].mean()), float(theirs[known].mean())
    return _answer(similar_spreads(*mean), by_seed, "proposed {:.3f}, benchmark {:.3f}".format(*mean))


def _answer(holds: bool, by_seed: list[bool], numbers: str) -> str:
    seeds = f" (mean of seeds; {sum(by_seed)} of {len(by_seed)} alone)" if len(by_seed) > 1 else ""
    return f"{'yes' if holds else 'no'}{seeds}: {numbers}"
