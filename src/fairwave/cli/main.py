"""`fairwave`: entry point, error handling, and the list of commands."""

from __future__ import annotations

import sys

import typer

from fairwave.cli import plan, scenario
from fairwave.errors import FairwaveError

app = typer.Typer(
    name="fairwave",
    help="Utility-fair, differentially private federated learning over a wireless cell.\n\n"
    "Start with:  fairwave plan paper --no-fading",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("plan")(plan.plan)
app.add_typer(scenario.app, name="scenario")


def _version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        typer.echo(f"fairwave {importlib.metadata.version('fairwave')}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line: one line and a telling exit code for what a user can mend, a traceback for a bug."""
    try:
        app()
    except FairwaveError as error:
        typer.echo(f"fairwave: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("fairwave: interrupted", err=True)
        sys.exit(130)
