"""`fairwave privacy`: what a run has released, to whom, and what is proved about it."""

from __future__ import annotations

import enum
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from fairwave.cli import privacy_plan_command
from fairwave.cli.arguments import RunFolder
from fairwave.cli.help_texts import WholeSummaries
from fairwave.cli.out_files import make_folder_of
from fairwave.cli.scenario_command import Plugins
from fairwave.errors import ArgumentError, OutputError, StoreError
from fairwave.signing import KEY

if TYPE_CHECKING:
    from fairwave.privacy.exposure import Exposure
    from fairwave.report.privacy_account import RunAccount, SchemeAccount
    from fairwave.runs.store import RunStore

WIDTH = 110


class Form(enum.StrEnum):
    """How the account is given."""

    TEXT = "text"
    JSON = "json"


ACCOUNT = "account"


class _AccountByDefault(WholeSummaries):
    """`fairwave privacy RUN` is short for `fairwave privacy account RUN`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names; where it names none, it is a run."""
        if args and self.get_command(ctx, args[0]) is None:
            args = [ACCOUNT, *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_AccountByDefault,
    help="Show what a run has released and what is proved about it, or plan for a privacy budget.\n\n'fairwave "
    "privacy RUN' is short for 'fairwave privacy account RUN'.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"ignore_unknown_options": True},
)


@app.command(ACCOUNT)
def privacy(
    run: RunFolder,
    coalition: Annotated[
        int | None,
        typer.Option(min=1, help="Assume that this many devices pool what they receive. Default: all devices."),
    ] = None,
    form: Annotated[
        Form,
        typer.Option(
            "--format",
            show_default=False,
            help="Print text, or a JSON statement that others can verify. Default: text.",
        ),
    ] = Form.TEXT,
    key: Annotated[
        Path | None,
        typer.Option(
            show_default=False,
            help=f"Sign the statement with this private key (Ed25519, PEM). Default: {KEY} in RUN or in the folder "
            "above it.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the statement to this file. Default: standard output.")
    ] = None,
    plugins: Plugins = None,
) -> None:
    """Account for a run: compute epsilon per audience from its ledger, and what the paper's rules would quote.

    If the code does not enforce the sensitivity of a message, the message costs infinity, whatever its noise. No
    guarantee is printed that is not proved. A statement (--format json) holds all events and is signed.
    The script examples/verify_statement.py of the sources recomputes every epsilon in it without fairwave.

    Examples:

      fairwave privacy runs/paper

      fairwave privacy runs/fair --format json --key statement.key --out statement.json
    """
    from fairwave.plugins import load_plugins
    from fairwave.report.privacy_account import run_account
    from fairwave.runs.store import RunStore

    if form is Form.TEXT and (key is not None or out is not None):
        raise ArgumentError("--key and --out: go with a statement; add --format json, or leave them out")
    load_plugins(plugins or ())
    store = RunStore(run)
    try:
        order, ledgers, unfinished = store.order, store.ledgers(), store.unfinished()
        if not ledgers and not unfinished:
            raise StoreError(f"{run}: no round is stored yet; run 'fairwave resume {run}'")
        _check_coalition(coalition, order.scenario.cell.num_devices)
        if form is Form.JSON:
            _write_statement(store, coalition, key, out)
            return
    finally:
        store.close()
    account = run_account(order.scenario, ledgers, unfinished, coalition)
    seeds = ", for the seed that costs most" if len(order.seeds) > 1 else ""
    typer.echo(f"privacy.mode '{account.scenario.privacy.mode}', at delta {account.delta:g}{seeds}\n")
    for scheme in account.schemes:
        _print_scheme(scheme, account.delta)
    if account.together is not None:
        typer.echo(f"{account.together.audience}: {_cost(account.together, account.delta)}")
        typer.echo(textwrap.fill(f"({account.together_note})", WIDTH, initial_indent="  ", subsequent_indent="  "))
    for line in account.unfinished:
        typer.echo(line)
    _print_words(account)
    if order.init_from is not None:
        typer.echo(textwrap.fill(order.init_from.caveat(), WIDTH, subsequent_indent="  "))


def _check_coalition(size: int | None, devices: int) -> None:
    """Refuse more devices than can pool what they hear about another one."""
    most = max(devices - 1, 1)
    if size is not None and size > most:
        raise ArgumentError(
            f"--coalition {size}: is more than the other devices of a cell of {devices}; give a number from 1 to {most}"
        )


def _write_statement(store: RunStore, coalition: int | None, key: Path | None, out: Path | None) -> None:
    """Write a statement, signed with the key that was given or the one beside the run."""
    from fairwave.report.privacy_statement import StatedRun, statement
    from fairwave.signing import signed, signing_key

    beside = (place / KEY for place in (store.folder, store.folder.resolve().parent))
    found = key or next((path for path in beside if path.exists()), None)
    signer = None if found is None else signing_key(found)
    if out is not None:
        make_folder_of(out)
    order = store.order
    layouts = {seed: layout for seed in order.seeds if (layout := store.layout(seed)) is not None}
    stated = StatedRun(
        scenario=order.scenario,
        ledgers=store.ledgers(),
        unfinished=store.unfinished(),
        counts={seed: layout["samples"].sum(axis=1) for seed, layout in layouts.items()},
        digests=store.digests(),
        caveats=() if order.init_from is None else (order.init_from.caveat(),),
    )
    content = signed(statement(stated, coalition), signer)
    if out is None:
        typer.echo(content.decode(), nl=False)
    else:
        try:
            out.write_bytes(content)
        except OSError as error:
            raise OutputError(f"{out}: cannot be written ({error.strerror}); choose another --out") from None
        typer.echo(f"wrote {out}", err=True)
    if signer is None:
        typer.echo(f"the statement is not signed: there is no {KEY} beside the run; give --key to sign it", err=True)


def _print_scheme(scheme: SchemeAccount, delta: float) -> None:
    from fairwave.report.privacy_account import cost
    from fairwave.report.style import counted

    typer.echo(f"{scheme.scheme}, {counted(scheme.rounds, 'round')} (seed {scheme.seed})")
    for exposure in scheme.exposures:
        typer.echo(f"  {exposure.audience}: {_cost(exposure, delta)}")
        if exposure.reason:
            typer.echo(f"    {exposure.reason}")
    if any(exposure.derived for exposure in scheme.exposures):
        typer.echo("    (all that the access point sends is computed from what it received, which costs nothing more)")
    if scheme.devices:
        typer.echo("  device     steps       sampling rate  noise multiplier   epsilon")
    for device, account in scheme.devices.items():
        for (multiplier, sampling), steps in account.releases.items():
            typer.echo(
                f"  {device:6d} {steps:9d} {sampling:19.5f} {multiplier:17.4f} {cost(account.epsilon(delta)):>9}"
            )


def _cost(exposure: Exposure, delta: float) -> str:
    from fairwave.report.privacy_account import cost
    from fairwave.report.style import counted

    account = exposure.account
    if exposure.derived:
        return f"epsilon {cost(exposure.epsilon)}, no more than the access point"
    whom = "every device" if exposure.about is None else f"device {exposure.about}"
    stated = f"epsilon {cost(exposure.epsilon)} about {whom}, after {counted(account.messages, 'message')}"
    if account.unproven:
        return stated
    lost = f"; {account.lost_delta:.1e} of delta pays for overfull batches and rounding" if account.lost_delta else ""
    bound = cost(account.epsilon(delta, "renyi"))
    return f"{stated} (a looser bound, by Renyi divergences: {bound}{lost})"


def _print_words(account: RunAccount) -> None:
    typer.echo()
    for line in (*account.claims, *account.quoted()):
        indent = "  " if line.startswith("  ") else ""
        typer.echo(textwrap.fill(line.strip(), WIDTH, initial_indent=indent, subsequent_indent="  "))


app.command("plan")(privacy_plan_command.plan)
