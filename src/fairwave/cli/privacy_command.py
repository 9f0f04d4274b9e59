"""`fairwave privacy`: what a run has released, to whom, and what is proved about it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.arguments import RunFolder
from fairwave.cli.scenario_command import Plugins
from fairwave.errors import StoreError

if TYPE_CHECKING:
    from fairwave.privacy.exposure import Exposure
    from fairwave.report.privacy_account import RunAccount, SchemeAccount

WIDTH = 110


def privacy(
    run: RunFolder,
    coalition: Annotated[
        int | None, typer.Option(min=1, help="Devices that pool what they hear. Default: all of them.")
    ] = None,
    plugins: Plugins = None,
) -> None:
    """Account for a run: epsilon per audience from its ledger, and what the paper's rules would quote beside it.

    A message whose sensitivity the code does not enforce costs infinity, whatever its noise: no guarantee is printed
    that is not proved.

    Example:  fairwave privacy runs/paper
    """
    from fairwave.plugins import load_plugins
    from fairwave.report.privacy_account import run_account
    from fairwave.runs.store import RunStore

    load_plugins(plugins or ())
    store = RunStore(run)
    order, ledgers = store.order, store.ledgers()
    store.close()
    account = run_account(order.scenario, ledgers, coalition)
    seeds = ", for the seed that costs most" if len(order.seeds) > 1 else ""
    if not account.schemes:
        raise StoreError(f"{run}: no round is stored yet; run 'fairwave resume {run}'")
    typer.echo(f"privacy.mode '{account.scenario.privacy.mode}', at delta {account.delta:g}{seeds}\n")
    for scheme in account.schemes:
        _print_scheme(scheme, account.delta)
    _print_words(account)


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
