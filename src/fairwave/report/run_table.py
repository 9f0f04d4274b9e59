"""A run in a terminal: one row per scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairwave.metrics.uploads import uploading
from fairwave.report.fitting_table import FittingTable
from fairwave.report.headlines import headlines
from fairwave.report.paper_setting import is_beside_paper
from fairwave.report.statistics import fairness_over_seeds, labelled, last_value, mean_loss, tested_measure
from fairwave.report.style import counted, with_interval

if TYPE_CHECKING:
    import xarray as xr
    from rich.console import Group


def run_table(results: xr.Dataset) -> Group:
    """Learning and energy of every scheme, then, where the run has the paper's setting, its headlines beside ours.

    The last loss is the devices' mean after local training, each on its own data; the global loss is that of the access
    point's model on all of it.
    """
    from rich.console import Group
    from rich.table import Table

    title = ", ".join(counted(results.sizes[name], name) for name in ("round", "seed", "device"))
    measure, in_words = tested_measure(results)
    backdoor = ("backdoor",) if "backdoor_success" in results else ()
    heads = ["scheme", "last\nloss", "global\nloss", in_words.replace(" ", "\n", 1), *backdoor]
    heads += ["energy\n(mJ)", "std\n(mJ)", "max/min", "outages", "updates\nused"]
    loss, tested, rows = mean_loss(results), results[measure], []
    for name in map(str, results["scheme"].values):
        energy = fairness_over_seeds(results, name)
        asked = (results["participating"] == 1).sel(scheme=name).sum()
        used = (results["delivered"] == 1) | (results["late_age"] > 0 if "late_age" in results else False)
        outages = 1.0 - float(uploading(results).sel(scheme=name).sum() / asked)
        rows.append(
            (
                labelled(results, name),
                with_interval(last_value(loss, name)),
                with_interval(last_value(results["global_loss"], name)),
                with_interval(last_value(tested, name)),
                *(with_interval(last_value(results["backdoor_success"], name)) for _ in backdoor),
                with_interval(energy["mean"], 1, 1e3),
                with_interval(energy["std"], 2, 1e3),
                with_interval(energy["max_min"], 2),
                f"{outages:.2%}",
                f"{float(used.sel(scheme=name).sum() / asked):.2%}",
            )
        )
    schemes = FittingTable(title, heads, rows)
    claims = Table(title="the paper's headlines", title_justify="left")
    for column in ("proposed", "paper", "measured"):
        claims.add_column(column)
    for claim in headlines(results) if is_beside_paper(results) else ():
        claims.add_row(claim.claim, claim.stated.printed, claim.text())
    return Group(schemes, claims) if claims.row_count else Group(schemes)
