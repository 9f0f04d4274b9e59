"""`fairwave`: entry point, error handling, and the list of commands."""

from __future__ import annotations

import os
import sys

import click
import typer

from fairwave.cli import audit_command as audit
from fairwave.cli import data_command as data
from fairwave.cli import device_command as device
from fairwave.cli import export_command as export
from fairwave.cli import federate_command as federate
from fairwave.cli import init_command as init
from fairwave.cli import plan_command as plan
from fairwave.cli import privacy_command as privacy
from fairwave.cli import report_command as report
from fairwave.cli import reproduce_command as reproduce
from fairwave.cli import run_command as run
from fairwave.cli import runs_command as runs
from fairwave.cli import scenario_command as scenario
from fairwave.cli import study_command as study
from fairwave.cli import sweep_command as sweep
from fairwave.cli import ui_command as ui
from fairwave.cli.help_texts import WholeSummaries, mend_help
from fairwave.cli.program_cache import keep_programs
from fairwave.errors import FairwaveError, OutputError

INTERRUPTED = 130
"""What a shell expects after Ctrl-C, and what typer returns for it."""

mend_help()

app = typer.Typer(
    name="fairwave",
    help="Run utility-fair, differentially private federated learning over a wireless cell.\n\nStart with:  "
    "fairwave run small   then   fairwave report runs/small",
    no_args_is_help=True,
    cls=WholeSummaries,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("init")(init.init)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("report")(report.report)
app.command("ui")(ui.ui)
app.command("export")(export.export)
app.command("reproduce")(reproduce.reproduce)
app.command("audit")(audit.audit)
app.command("plan")(plan.plan)
app.command("sweep")(sweep.sweep)
app.add_typer(privacy.app, name="privacy")
app.add_typer(study.app, name="study", cls=WholeSummaries)
app.add_typer(federate.app, name="federate", cls=WholeSummaries)
app.add_typer(device.app, name="device", cls=WholeSummaries)
app.add_typer(runs.app, name="runs", cls=WholeSummaries)
app.add_typer(data.app, name="data", cls=WholeSummaries)
app.add_typer(scenario.app, name="scenario", cls=WholeSummaries)


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
    """Run the command line: one line and a telling exit code for what a user can correct, a traceback for a bug."""
    keep_programs()
    try:
        code = app(standalone_mode=False, prog_name="fairwave")
        sys.stdout.flush()
        if code == INTERRUPTED:
            _leave()
    except (click.exceptions.Abort, KeyboardInterrupt):
        _leave()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:  # whoever read our output has seen enough
        _drop_output()
        sys.exit(141)
    except OSError as error:
        _drop_output()
        where = error.filename or "standard output"
        _end(f"{where}: cannot be used ({error.strerror}); choose another place", OutputError.exit_code)
    except FairwaveError as error:
        _end(str(error), error.exit_code)
    sys.exit(code)


def _drop_output() -> None:
    """What is still buffered cannot be written; left alone, Python would try again at exit and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave() -> None:
    """End at once: computations that still run would meet an interpreter that is being torn down, and abort it."""
    typer.echo("fairwave: interrupted", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)


def _end(message: str, code: int) -> None:
    typer.echo(f"fairwave: {message}", err=True)
    sys.exit(code)
