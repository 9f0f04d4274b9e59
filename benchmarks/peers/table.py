"""What the sweeps say: medians, ratios taken inside a sweep, shares of the limit; as a table, as JSON, as a figure."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers.environments import ROOT

Row = dict[str, Any]


def spread(values: Sequence[float]) -> dict[str, float] | None:
    """Median, least and most; None of nothing."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)} if values else None


def summarise(rows: list[Row], reference: str, tolerance: float) -> None:
    """Add to every row what follows from its `seconds` and `gflop` of each sweep and those of others."""
    by_name = {row["name"]: row for row in rows}
    reached = [row["accuracy"] for row in rows if row["same_job"] and row.get("accuracy") is not None]
    middle = statistics.median(reached) if reached else None
    for row in rows:
        row["seconds_per_round"] = spread(row["seconds"])
        row["ratio"] = spread(_per_sweep(row["seconds"], by_name.get(reference, {}).get("seconds", [])))
        limit = by_name.get(row["limit"], {})
        own_rate, limit_rate = _rates(row), _rates(limit)
        row["share_of_limit"] = spread(_per_sweep(own_rate, limit_rate))
        told = row.get("accuracy")
        row["agrees"] = None if told is None or not row["same_job"] else abs(told - middle) <= tolerance


def _per_sweep(above: Sequence[float], below: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(above, below, strict=False)]  # one that failed has fewer sweeps


def _rates(row: Row) -> list[float]:
    return _per_sweep(row.get("gflop") or [], row.get("seconds") or [])


HEAD = ("", "median", "min .. max", "ratio", "min .. max", "of limit", "start-up", "peak", "accuracy")
FORM = "{:<40}{:>11}{:>23}{:>9}{:>18}{:>10}{:>10}{:>10}{:>10}"


def show(title: str, unit: str, rows: list[Row], tolerance: float) -> None:
    """Print the table; times below a tenth of a second are in milliseconds."""
    medians = [row["seconds_per_round"]["median"] for row in rows if row["seconds_per_round"]]
    scale, short = (1e3, "milli") if medians and min(medians) < 0.1 else (1.0, "")
    print(f"\n{title}; {short}{unit}\n{FORM.format(*HEAD)}")
    for row in rows:
        if "failed" in row:
            print(f"{row['label']:<40}failed: {row['failed']}")
        if row["seconds_per_round"] is None:
            continue
        took, ratio, share = row["seconds_per_round"], row["ratio"], row["share_of_limit"]
        cells = [
            f"{scale * took['median']:.3f}",
            f"{scale * took['min']:.3f} .. {scale * took['max']:.3f}",
            "" if ratio is None else f"{ratio['median']:.2f}",
            "" if ratio is None else f"{ratio['min']:.2f} .. {ratio['max']:.2f}",
            "" if share is None else f"{share['median']:.0%}",
            _number(row.get("ready"), ".1f", " s"),
            _number(row.get("peak_mb"), ".0f", " MB"),
            _number(row.get("accuracy"), ".4f", ""),
        ]
        apart = f"  DIFFERS by more than {tolerance}" if row["agrees"] is False else ""
        other = "" if row["same_job"] or row.get("accuracy") is None else "  (other work)"
        print(f"{FORM.format(row['label'], *cells)}{apart}{other}")


def _number(value: float | None, form: str, unit: str) -> str:
    return "" if value is None else f"{value:{form}}{unit}"


def write(name: str, about: dict[str, Any], rows: list[Row]) -> Path:
    """Everything, as JSON."""
    path = ROOT / "docs" / "benchmarks" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**about, "machine": machine(), "candidates": rows}, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    """What it was measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def draw(name: str, title: str, unit: str, rows: list[Row]) -> Path:
    """A bar per candidate with its spread, in the style of the project's figures."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from fairwave.report.style import COLOURS, STATIC

    shown = [row for row in rows if row["seconds_per_round"] is not None][::-1]
    took = [row["seconds_per_round"] for row in shown]
    medians = [each["median"] for each in took]
    errors = [[each["median"] - each["min"] for each in took], [each["max"] - each["median"] for each in took]]
    colours = [_colour(row["name"], COLOURS) for row in shown]
    path = ROOT / "docs" / "figures" / f"benchmark-{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    with pyplot.rc_context(STATIC):
        figure, axis = pyplot.subplots(figsize=(7.0, 0.8 + 0.28 * len(shown)), layout="constrained")
        axis.barh(
            [row["label"] for row in shown], medians, xerr=errors, color=colours, height=0.7, error_kw={"lw": 0.8}
        )
        if shown and max(medians) > 30 * min(medians):
            axis.set_xscale("log")
        axis.set_xlabel(unit)
        axis.set_title(title, fontsize=9)
        axis.grid(alpha=0.3, axis="x")
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
    return path


def _colour(name: str, colours: Sequence[str]) -> str:
    """Blue for fairwave, grey for limits, orange for peers."""
    return colours[0] if name.startswith("fairwave") else colours[8] if name.startswith("sgemm") else colours[4]
