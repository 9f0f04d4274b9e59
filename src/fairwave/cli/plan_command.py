"""`fairwave plan`: each device's best iterations and power, without training."""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.arguments import DEFAULT_COMPARED, names_after_commas, names_in, warn
from fairwave.cli.out_files import make_folder_of
from fairwave.cli.scenario_command import Overrides, Plugins, Source
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import RULES, listed

if TYPE_CHECKING:
    import xarray as xr

_SLOW = 200_000
"""Plans per policy from which a progress bar is worth its lines."""


class Format(enum.StrEnum):
    """How the plan is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def plan(
    source: Source = "paper",
    devices: Annotated[
        Path | None,
        typer.Option(
            help="Read the fleet from a CSV or Parquet file. It has a row per device, a column distance_m and a column "
            "for every parameter that differs."
        ),
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            help=f"Compare these policies, separated by commas, or 'all'. Policies: {listed(RULES)}, and those of "
            "plugins.",
            autocompletion=lambda incomplete: names_after_commas(RULES, incomplete),
        ),
    ] = DEFAULT_COMPARED,
    overrides: Overrides = None,
    plugins: Plugins = None,
    draws: Annotated[
        int | None,
        typer.Option(help="Average over this many channel draws. Default: as many as the scenario has rounds."),
    ] = None,
    fading: Annotated[
        bool,
        typer.Option(
            "--fading/--no-fading",
            show_default=False,
            help="Draw fading, or plan for the path loss alone. Default: draw fading.",
        ),
    ] = True,
    battery: Annotated[
        str | None,
        typer.Option(
            help="Give every device a battery of this capacity, as in '2 Wh', and show how many rounds it lasts."
        ),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="Print the plan in this form.")] = Format.TABLE,
    rows: Annotated[int, typer.Option(help="Show at most this many devices in a table.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write all devices to this .parquet, .csv, .json or .nc file, or a page to this .html file."
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw the plan to this .svg, .pdf or .png file.")] = None,
) -> None:
    """Plan a round: compute each device's best iterations, power, rate, times, energies and utility.

    SOURCE is a preset (see 'fairwave scenario list') or a TOML file. Policies are compared over the same channels.
    Nothing is trained.

    Examples:

      fairwave plan paper --no-fading

      fairwave plan paper --policies all --draws 1000 --plot plan.svg

      fairwave plan --devices fleet.csv --battery "2 Wh" --out plan.parquet

      fairwave plan paper --battery "2 Wh" --out plan.html

      fairwave plan my.toml --set cell.deadline_s=0.5 --format json
    """
    from fairwave.planner.plan import plan as make_plan
    from fairwave.planner.summary import energy_fairness
    from fairwave.planner.what_if import what_if
    from fairwave.runs.forewarnings import forewarnings, outlook_of_plan
    from fairwave.scenario.loading import load_scenario
    from fairwave.scenario.per_device import with_device_file

    _prepare_files(out, plot)
    if rows < 1:
        raise ArgumentError(f"--rows {rows}: too few; show at least one device")
    if battery and battery.replace(".", "", 1).isdecimal():
        raise ArgumentError(f'--battery {battery}: has no unit; write it with one, such as "{battery} Wh"')
    settings = [*(overrides or ()), *([f"compute.battery_capacity_j='{battery}'"] if battery else ())]
    scenario, labels = load_scenario(source, settings, plugins=plugins or ()), None
    if devices is not None:
        scenario, labels = with_device_file(scenario, devices)
    names = names_in(policies, RULES.names())
    work = scenario.cell.num_devices * (1 if not fading else draws or scenario.run.num_rounds)

    def compute(progress: Callable[[int], None]) -> xr.Dataset:
        try:
            return make_plan(scenario, names, draws=draws, fading=fading, labels=labels, progress=progress)
        except ScenarioError as error:  # found only when the devices were laid out: say in which file, once
            place = f"{devices or source}: "
            raise ScenarioError(place + str(error).removeprefix(place)) from None

    if work >= _SLOW and sys.stderr.isatty():
        result = _with_progress(compute, work * len(names))
    else:
        result = compute(lambda count: None)
    for sentence in forewarnings(outlook_of_plan(scenario)):
        warn(sentence)
    fairness = energy_fairness(result)
    _print(result, fairness, form, rows)
    if out is not None:
        from fairwave.report.plan_export import export_plan
        from fairwave.report.plan_page import ENDING, write_plan_page

        if out.suffix.lower() == ENDING:
            answers = what_if(scenario, names, draws=result.attrs["draws"], fading=fading)
            write_plan_page(result, fairness, answers, out, str(devices or source))
        else:
            export_plan(result, fairness, out)
        typer.echo(f"wrote {out}", err=True)
    if plot is not None:
        from fairwave.report.plan_figure import draw_plan

        draw_plan(result, plot)
        typer.echo(f"wrote {plot}", err=True)


def _prepare_files(out: Path | None, plot: Path | None) -> None:
    """Refuse a file that could not be written before any work is done for it, and make the folder of one that could."""
    from fairwave.report.plan_export import ENDINGS
    from fairwave.report.plan_figure import FORMATS
    from fairwave.report.plan_page import ENDING

    for option, path, allowed in (("--out", out, (*ENDINGS, ENDING)), ("--plot", plot, FORMATS)):
        if path is not None and path.suffix.lower() not in allowed:
            raise ArgumentError(f"{option} {path}: unknown ending '{path.suffix}'; choose from {', '.join(allowed)}")
    for path in (each for each in (out, plot) if each is not None):
        make_folder_of(path)


def _with_progress(compute: Callable[[Callable[[int], None]], xr.Dataset], total: int) -> xr.Dataset:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("planning"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("plan", total=total)
        return compute(lambda count: bar.advance(task, count))


def _print(plan: xr.Dataset, fairness: dict[str, dict[str, float]], form: Format, rows: int) -> None:
    from fairwave.report.plan_export import plan_json, write_csv

    match form:
        case Format.JSON:
            typer.echo(plan_json(plan, fairness))
        case Format.CSV:
            write_csv(plan, sys.stdout)
        case Format.TABLE:
            from rich.console import Console

            from fairwave.report.plan_table import FULL_WIDTH, plan_tables

            given = sys.stdout.isatty() or "COLUMNS" in os.environ
            console = Console(width=None if given else FULL_WIDTH)
            console.print(plan_tables(plan, fairness, rows, console.width))
