"""Write the table and the figure of docs/private_learning.md from measured rows.

    python docs/frontier.py [ROWS.csv | --check]

`benchmarks/frontier.py --csv ROWS.csv` measures. The rows are kept in docs/frontier.csv; `--check` writes nothing, and
fails if the table is not what they say.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from scipy.stats import t as student

DOCS = Path(__file__).parent
PAGE, ROWS, FIGURE = DOCS / "private_learning.md", DOCS / "frontier.csv", DOCS / "figures" / "frontier.svg"
PLACE = re.compile(r"(<!-- frontier -->\n).*?(<!-- end -->)", re.DOTALL)
Points = dict[tuple[str, int], dict[float, tuple[dict[str, str], np.ndarray]]]
"""For each data set and number of records, for each epsilon: the settings, and the accuracy of every seed."""


def points() -> Points:
    """The measured rows, grouped."""
    seen: dict[tuple[str, int, float], list[dict[str, str]]] = defaultdict(list)
    with ROWS.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            seen[row["data"], int(row["records"]), float(row["epsilon"])].append(row)
    grouped: Points = defaultdict(dict)
    for (data, records, epsilon), rows in sorted(seen.items()):
        grouped[data, records][epsilon] = rows[0], np.array([float(row["accuracy"]) for row in rows])
    return grouped


def half_width(values: np.ndarray) -> float:
    """Half of the 95 % interval of a mean over seeds."""
    if values.size < 2:
        return float("nan")
    return float(student.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))


def table() -> str:
    """One row per point, accuracy in per cent."""
    lines = ["| data | records a device | epsilon | multiplier | rate | test accuracy (%) | seeds |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (data, records), budgets in points().items():
        for epsilon, (settings, values) in budgets.items():
            mean = f"{100 * values.mean():.2f} ± {100 * half_width(values):.2f}"
            about = (Path(data).stem, f"{records:,}", f"{epsilon:g}", settings["multiplier"], settings["rate"])
            lines.append(f"| {' | '.join(about)} | {mean} | {values.size} |")
    return "\n".join(lines) + "\n"


def draw() -> None:
    """Accuracy against epsilon, with intervals."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "fairwave"
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for (data, records), budgets in points().items():
        epsilons = list(budgets)
        means = [100 * values.mean() for _, values in budgets.values()]
        errors = [100 * half_width(values) for _, values in budgets.values()]
        label = f"{Path(data).stem}, {records:,} records a device"
        axes.errorbar(epsilons, means, yerr=errors, marker="o", capsize=3, label=label)
    axes.set(xscale="log", xlabel="record-level epsilon (delta = 1e-5)", ylabel="test accuracy (%)")
    ticks = sorted({epsilon for budgets in points().values() for epsilon in budgets})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    """Write, or check."""
    words = sys.argv[1:]
    if words and words != ["--check"]:
        shutil.copyfile(words[0], ROWS)
    old = PAGE.read_text("utf-8")
    new = PLACE.sub(lambda found: found[1] + table() + found[2], old)
    if words == ["--check"]:
        sys.exit(0 if new == old else f"{PAGE.name}: not what {ROWS.name} says; run 'python docs/frontier.py'")
    PAGE.write_text(new, "utf-8")
    draw()


if __name__ == "__main__":
    main()
