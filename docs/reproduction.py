"""Write what docs/reproduction.md and README.md say about the paper's study, from the runs of that study.

    python docs/reproduction.py RUNS [--check]

RUNS is the folder of `fairwave reproduce`. A block stands between `<!-- NAME: RUN -->` and `<!-- end -->`; RUN is one
of the runs in RUNS. The two figures of the page are drawn anew as well. `--check` writes nothing, and fails if a block
is not what the runs say.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

import xarray as xr

import fairwave
from fairwave.cli.reproduce_command import OTHER_READINGS, PRESETS
from fairwave.metrics.intervals import interval
from fairwave.report.averaging import PROPOSED, last_shown_round, loss_spreads, shown_rounds
from fairwave.report.figure_data import panels
from fairwave.report.headline_notes import deep_fades
from fairwave.report.headlines import headlines, verdict
from fairwave.report.learning_sheet import learning_sheet
from fairwave.report.paper_section import paper_sheets
from fairwave.report.static_figures import write_figures
from fairwave.report.statistics import evaluated
from fairwave.report.style import counted, with_interval
from fairwave.report.tables import Sheet, sheet_markdown
from fairwave.runs.database import FILE

DOCS = Path(__file__).parent
FILES = (DOCS / "reproduction.md", DOCS.parent / "README.md")
BLOCK = re.compile(r"<!-- (?P<name>\w+): (?P<run>[\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
DRAWN = "paper-clean"
"""The run that the figures show."""
BENCHMARK = "max_power"
"""The benchmark as the paper words it: the one of the other readings, and of the README."""
SCHEMES = (PROPOSED, BENCHMARK, "amplifier_cap", "priced")

Runs = Mapping[str, xr.Dataset]
Blocks = Mapping[str, Mapping[str, str]]
"""What stands in the blocks, by run and name."""


def blocks(runs: Runs) -> Blocks:
    """All that there is to say of both presets."""
    missing = [name for name in PRESETS if name not in runs]
    if missing:
        sys.exit(f"{', '.join(missing)}: no such run; make it with fairwave reproduce")
    return {name: _of_run(name, runs) for name in PRESETS}


def _of_run(run: str, runs: Runs) -> dict[str, str]:
    results = runs[run]
    sheets = (*paper_sheets(results), learning_sheet(results), _readings(run, runs))
    return {sheet.key: sheet_markdown(sheet) for sheet in sheets} | {
        "size": _paragraph(_size(run, results)),
        "verdict": "".join(_paragraph(sentence, "* ") for sentence in verdict(headlines(results))),
        "fades": "".join(map(_paragraph, deep_fades(results))),
        "summary": _summary(run, results),
    }


def written(text: str, told: Blocks) -> str:
    """A page with its blocks as the runs have them."""

    def block(found: re.Match[str]) -> str:
        name, run = found["name"], found["run"]
        if name not in told.get(run, {}):
            sys.exit(
                f"{name}: {run}: no such block; the runs are {', '.join(told)}, and the blocks of each are "
                f"{', '.join(next(iter(told.values())))}"
            )
        return f"<!-- {name}: {run} -->\n{told[run][name]}<!-- end -->"

    return BLOCK.sub(block, text)


def _size(run: str, results: xr.Dataset) -> str:
    devices, rounds, seeds = (counted(results.sizes[name], name) for name in ("device", "round", "seed"))
    machine = results.attrs.get("machine", "an unknown machine")
    return f"The runs of `{run}` have {devices}, {rounds} and {seeds}. They were computed on {machine}."


def _summary(run: str, results: xr.Dataset) -> str:
    """The headlines against the benchmark as worded, one to a line, and whether a benchmark gives all."""
    found = headlines(results)
    size = f"`{run}`, {counted(results.sizes['seed'], 'seed')}, {counted(results.sizes['round'], 'round')}"
    span = f"losses over {counted(last_shown_round(results), 'round')}"
    opening = (
        f"This is how `{PROPOSED}` compares with the benchmark `{BENCHMARK}` in the paper's cell ({size}; {span}):"
    )
    lines = [
        f"The {each.claim.removesuffix(f' against {BENCHMARK}')} {'changes by' if each.base else 'is'} {each.text()}. "
        f"The paper says {each.stated.printed}."
        for each in found
        if each.base in (BENCHMARK, None)
    ]
    listed = "".join(_paragraph(line, "* ") for line in lines)
    return f"{_paragraph(opening)}\n{listed}\n{_paragraph(verdict(found)[0])}"


def _readings(run: str, runs: Runs) -> Sheet:
    """A run beside those in which the paper is read in another way, as far as they were made."""
    names = {run: "as it is"} | {f"{run}-{name}": f"`{setting}`" for name, setting in OTHER_READINGS.items()}
    rows = []
    for name, label in names.items():
        if name not in runs:
            continue
        results = runs[name]
        energy, _, loss = (each for each in headlines(results) if each.base == BENCHMARK)
        last = evaluated(results, "test_accuracy").isel(round=-1)
        rows.append(
            (
                label,
                energy.text(),
                loss.text(),
                *(with_interval(loss_spreads(results, scheme)["mean"]) for scheme in (PROPOSED, BENCHMARK)),
                *(with_interval(interval(last.sel(scheme=scheme).values)) for scheme in (PROPOSED, BENCHMARK)),
            )
        )
    heads = (
        "reading",
        f"std of device energy, against `{BENCHMARK}`",
        f"mean training loss, against `{BENCHMARK}`",
        f"loss std, `{PROPOSED}`",
        f"loss std, `{BENCHMARK}`",
        f"test accuracy, `{PROPOSED}`",
        f"test accuracy, `{BENCHMARK}`",
    )
    return Sheet("readings", "", "", heads, rows)


def _paragraph(text: str, bullet: str = "") -> str:
    """Lines of a paragraph; a number stays on a line with its unit."""
    joined = text.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.fill(joined, 120, initial_indent=bullet, subsequent_indent=" " * len(bullet))
    return lines.replace("\N{NO-BREAK SPACE}", " ") + "\n"


def read(folder: Path) -> dict[str, xr.Dataset]:
    """The results of all runs in a folder, by name."""
    runs = {}
    for path in sorted(each for each in folder.iterdir() if (each / FILE).exists()):
        with fairwave.open_run(path) as run:
            runs[path.name] = run.results
    return runs


def draw(results: xr.Dataset, folder: Path) -> None:
    """The two figures of the page: the loss over the rounds that the paper shows, and energy against path loss."""
    some = results.sel(scheme=[name for name in SCHEMES if name in results["scheme"].values])
    loss, energy = panels(shown_rounds(some))[0], panels(some)[1]
    with tempfile.TemporaryDirectory() as place:
        write_figures([loss, energy], Path(place))
        for panel, name in ((loss, "training_loss"), (energy, "energy")):
            shutil.copyfile(Path(place) / f"{panel.key}.svg", folder / f"{name}.svg")


def main() -> None:
    """Write, or check."""
    arguments = [each for each in sys.argv[1:] if each != "--check"]
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.exit("usage: python docs/reproduction.py RUNS [--check], where RUNS is the folder of fairwave reproduce")
    runs = read(Path(arguments[0]))
    told = blocks(runs)
    stale = [path for path in FILES if written(path.read_text("utf-8"), told) != path.read_text("utf-8")]
    if "--check" in sys.argv:
        sys.exit(f"out of date: {', '.join(path.name for path in stale)}; run without --check" if stale else 0)
    for path in stale:
        path.write_text(written(path.read_text("utf-8"), told), "utf-8")
    draw(runs[DRAWN], DOCS / "figures")


if __name__ == "__main__":
    main()
