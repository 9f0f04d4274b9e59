"""`fairwave scenario`: what can be set, and what is set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairwave.cli.glossed_names import tell_beside

if TYPE_CHECKING:
    from fairwave.registry import Registry

app = typer.Typer(
    help="Show presets, scenario files, and what scenarios can name.", no_args_is_help=True, rich_markup_mode=None
)


def presets_from(incomplete: str) -> list[str]:
    """Presets that a shell may complete to; where there are none, it completes the names of files."""
    from fairwave.scenario.loading import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


Source = Annotated[
    str,
    typer.Argument(
        help="This is the scenario: a preset (see 'fairwave scenario list') or a TOML file.",
        autocompletion=presets_from,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="GROUP.KEY=VALUE",
        help="Override a value of the scenario, as in --set radio.bandwidth_hz=500kHz. The option may be repeated.",
    ),
]

Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="Load this Python file. Its schemes, rules, behaviours, defences, models, data sets and laws can then "
        "be named.",
    ),
]


@app.command("list")
def list_presets() -> None:
    """List the presets."""
    from fairwave.scenario.loading import preset_names, preset_summary

    for name in preset_names():
        tell_beside(name, preset_summary(name), 15)


@app.command("schemes")
def list_schemes(plugins: Plugins = None) -> None:
    """List the schemes that can be compared."""
    from fairwave.extensions import SCHEMES

    _list(SCHEMES, plugins)


@app.command("policies")
def list_policies(plugins: Plugins = None) -> None:
    """List the rules by which devices choose iterations and power."""
    from fairwave.extensions import RULES

    _list(RULES, plugins)


@app.command("behaviours")
def list_behaviours(plugins: Plugins = None) -> None:
    """List the ways in which devices can misbehave, with the default strength of each."""
    from fairwave.extensions import BEHAVIOURS

    _list(BEHAVIOURS, plugins)


@app.command("defences")
def list_defences(plugins: Plugins = None) -> None:
    """List the defences of the access point against devices that misbehave, in the order in which they act."""
    from fairwave.extensions import DEFENCES

    _list(DEFENCES, plugins, order=lambda defence: (defence.order, defence.name))


@app.command("aggregators")
def list_aggregators(plugins: Plugins = None) -> None:
    """List the aggregators that defences.aggregator can name. An aggregator turns all updates into one step."""
    from fairwave.extensions import AGGREGATORS

    _list(AGGREGATORS, plugins)


@app.command("models")
def list_models(plugins: Plugins = None) -> None:
    """List the models that learning.model can name."""
    from fairwave.extensions import MODELS

    _list(MODELS, plugins)


@app.command("features")
def list_features(plugins: Plugins = None) -> None:
    """List the features that learning.features can name."""
    from fairwave.extensions import FEATURES

    _list(FEATURES, plugins)


def _list(registry: Registry[Any], plugins: list[Path] | None, order: Callable[[Any], Any] = lambda member: 0) -> None:
    from fairwave.plugins import load_plugins

    load_plugins(plugins or ())
    for member in sorted(registry.values(), key=order):
        strength = getattr(member, "strength", None)
        default = "" if strength is None else f" Default strength: {strength:g}."
        tell_beside(member.name, f"{member.summary}{default}", 18)


@app.command()
def show(source: Source = "paper", overrides: Overrides = None, plugins: Plugins = None) -> None:
    """Print a scenario in full, as TOML in SI units. It can be edited and loaded again."""
    from fairwave.scenario.loading import load_scenario
    from fairwave.scenario.show import to_toml

    typer.echo(to_toml(load_scenario(source, overrides or (), plugins=plugins or ())), nl=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors that complete and check TOML."""
    from fairwave.scenario.file_schema import file_schema

    typer.echo(json.dumps(file_schema(), indent=1))
