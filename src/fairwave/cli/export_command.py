"""`fairwave export`: a run's results or one of its models for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwave.cli.arguments import RunFolder
from fairwave.cli.out_files import make_folder_of
from fairwave.cli.scenario_command import Plugins
from fairwave.errors import ArgumentError


def export(
    run: RunFolder,
    to: Annotated[
        Path,
        typer.Option(
            help="Write this file. Results go to .nc (xarray), .parquet or .csv (a row per device and round), and a "
            "model to .safetensors, .npz or .onnx."
        ),
    ],
    scheme: Annotated[
        str | None,
        typer.Option(show_default=False, help="Export a model of this scheme. Default: the run's first scheme."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(show_default=False, help="Export a model of this seed. Default: the run's first seed.")
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--round",
            show_default=False,
            help="Export the model after this round, if run.keep_models kept it. Default: the last round.",
        ),
    ] = None,
    device: Annotated[
        int | None,
        typer.Option(show_default=False, help="Export the copy of this device. Default: the access point's own model."),
    ] = None,
    plugins: Plugins = None,
) -> None:
    """Write all results of a run, or one of the models that it trained.

    Results are every value of every scheme, seed, round and device. Values that the run's privacy mode does not cover
    are marked: in the attribute 'private' of a NetCDF variable, or in the metadata of a Parquet column. CSV has no
    place for such a mark, so a note is printed. A model's file says what the model takes and returns, and what is
    proved about it. The page docs/models_and_results.md describes these files.

    Examples:

      fairwave export runs/paper --to results.nc

      fairwave export runs/paper --to model.safetensors --scheme proposed

      fairwave export runs/paper --to copy.onnx --scheme proposed --seed 0 --device 3
    """
    from fairwave.plugins import load_plugins
    from fairwave.report.run_export import ENDINGS
    from fairwave.runs.model_export import MODEL_ENDINGS

    load_plugins(plugins or ())
    ending = to.suffix.lower()
    if ending in MODEL_ENDINGS:
        _export_model(run, to, scheme, seed, number, device)
        return
    if ending not in ENDINGS:
        known = ", ".join((*ENDINGS, *MODEL_ENDINGS))
        raise ArgumentError(f"--to {to}: unknown ending '{to.suffix}'; choose from {known}")
    options = {"--scheme": scheme, "--seed": seed, "--round": number, "--device": device}
    for option, value in options.items():
        if value is not None:
            raise ArgumentError(
                f"{option} {value}: chooses a model, and {to} takes all results; leave it out, or write "
                f"{', '.join(MODEL_ENDINGS)}"
            )
    _export_results(run, to)


def _export_results(run: Path, to: Path) -> None:
    from fairwave.privacy.modes.mode import mode_of
    from fairwave.report.run_export import export_results, marked_columns, result_rows, with_marks
    from fairwave.runs.session import results
    from fairwave.runs.store import RunStore

    store = RunStore(run)
    make_folder_of(to)
    mode = mode_of(store.order.scenario.privacy)
    marked = with_marks(results(store), mode.not_private())
    store.close()
    export_results(marked, to)
    typer.echo(f"wrote {to}", err=True)
    if to.suffix.lower() == ".csv":
        written = set(result_rows(marked.isel(round=[0])).column_names)
        exact = ", ".join(name for name in marked_columns(marked) if name in written)
        typer.echo(f"not private in mode '{mode.name}': {exact}", err=True)


def _export_model(
    run: Path, to: Path, scheme: str | None, seed: int | None, number: int | None, device: int | None
) -> None:
    from fairwave.runs.open_run import open_run

    with open_run(run) as opened:
        exported = opened.exported(scheme, seed, round=number, device=device)
    make_folder_of(to)
    exported.write(to)
    typer.echo(f"wrote {to}: {exported.in_words()}", err=True)
    spent = exported.epsilons()
    shown = {who: value if isinstance(value, str) else f"{value:.3f}" for who, value in (spent or {}).items()}
    told = "; ".join(f"{who}: epsilon {value}" for who, value in shown.items())
    typer.echo(f"privacy: {told or 'none proved'}", err=True)
