"""`fairwave scenario`: what can be set, and what is set."""

from __future__ import annotations

import json
import shutil
import textwrap
from typing import Annotated

import typer

app = typer.Typer(help="Look at presets and scenario files.", no_args_is_help=True, rich_markup_mode=None)

Source = Annotated[
    str,
    typer.Argument(
        show_default=False, help="A preset (see 'fairwave scenario list') or a TOML file; left out, the preset paper."
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="GROUP.KEY=VALUE", help="Override a value, e.g. --set radio.bandwidth_hz=500kHz."),
]


@app.command("list")
def list_presets() -> None:
    """Name the presets, a line each."""
    from fairwave.scenario.loading import preset_names, preset_summary

    width = min(shutil.get_terminal_size().columns, 100)
    for name in preset_names():
        lines = textwrap.wrap(preset_summary(name), width - 13)
        typer.echo(f"{name:12} " + f"\n{'':13}".join(lines))


@app.command("behaviours")
def list_behaviours() -> None:
    """Name what devices may do instead of what they should, a line each, with the default strength."""
    from fairwave import adversaries

    for behaviour in adversaries.ALL.values():
        strength = "" if behaviour.strength is None else f" (strength, {behaviour.strength:g} if left out)"
        typer.echo(f"{behaviour.name:17} {behaviour.summary}{strength}")


@app.command("defences")
def list_defences() -> None:
    """Name what the access point may do about devices that misbehave, a line each, in the order in which they act."""
    from fairwave import defences

    for defence in defences.ALL.values():
        typer.echo(f"{defence.name:17} {defence.summary}")


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
