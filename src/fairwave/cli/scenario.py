"""`fairwave scenario`: what can be set, and what is set."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(help="Look at presets and scenario files.", no_args_is_help=True, rich_markup_mode=None)

Source = Annotated[str, typer.Argument(help="A preset (see 'fairwave scenario list') or a TOML file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="GROUP.KEY=VALUE", help="Override a value, e.g. --set radio.bandwidth_hz=500kHz."),
]


@app.command("list")
def list_presets() -> None:
    """Name the presets, a line each."""
    from fairwave.scenario.loading import preset_names, preset_summary

    for name in preset_names():
        typer.echo(f"{name:12} {preset_summary(name)}")


@app.command()
def show(source: Source = "paper", overrides: Overrides = None) -> None:
    """Print a scenario in full, as TOML in SI units that can be edited and loaded again."""
    from fairwave.scenario.loading import load_scenario
    from fairwave.scenario.show import to_toml

    typer.echo(to_toml(load_scenario(source, overrides or ())), nl=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors that complete and check TOML."""
    from fairwave.scenario.parameters import Scenario

    typer.echo(json.dumps(Scenario.model_json_schema(), indent=1))
