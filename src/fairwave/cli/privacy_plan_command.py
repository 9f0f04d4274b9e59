"""`fairwave privacy plan`: batch, steps, noise and rate for a privacy budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.scenario_command import Overrides, Plugins, Source
from fairwave.errors import ArgumentError

if TYPE_CHECKING:
    from fairwave.planner.private_learning import Lasting, Proposal
    from fairwave.scenario.parameters import Scenario


def plan(
    source: Source = "fair",
    epsilon: Annotated[
        float | None,
        typer.Option(min=0.01, max=1000.0, help="Plan for this budget. Default: the scenario's privacy.max_epsilon."),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(min=1, help="Assume that a device holds this many records. Default: the scenario's number."),
    ] = None,
    overrides: Overrides = None,
    plugins: Plugins = None,
) -> None:
    """Show what a privacy budget allows before any training: how many rounds, which noise, and better settings.

    For each batch size, the table shows how many local steps fit into the deadline and the rounds, and the least noise
    that stays within the budget. It also shows the largest learning rate at which all steps together move the model no
    farther, and leave no more noise in it, than the scenario's own settings do. Larger batches leave less noise in the
    gradients. A rate that is too large does not converge, so try more than one.

    Examples:

      fairwave privacy plan fair --epsilon 2

      fairwave privacy plan fair --epsilon 8 --records 500 --set run.num_rounds=50
    """
    from fairwave.planner.private_learning import lasting, propose
    from fairwave.plugins import load_plugins
    from fairwave.privacy.modes.mode import mode_of
    from fairwave.scenario.loading import load_scenario

    load_plugins(plugins or ())
    scenario = load_scenario(source, overrides or [])
    budget = epsilon if epsilon is not None else scenario.privacy.max_epsilon
    if budget is None:
        raise ArgumentError("--epsilon: the scenario has no privacy.max_epsilon to plan for; give --epsilon")
    held = records or scenario.data.samples_per_device or _shared_out(scenario)

    found = lasting(scenario, budget, held)
    typer.echo(
        f"epsilon {budget:g} at delta {scenario.privacy.delta:g}, {held:,} records a device, "
        f"{scenario.run.num_rounds} rounds\n"
    )
    typer.echo(_in_words(scenario, found))
    if not mode_of(scenario.privacy).counts_steps:
        return

    def tell(done: int, count: int) -> None:
        typer.echo(f"batch size {done + 1} of {count}", err=True)

    proposals = propose(scenario, budget, held, tell)
    typer.echo()
    _print(proposals, held)
    least = min(proposals, key=lambda each: each.gradient_noise)
    settings = " ".join(f"--set {each}" for each in (*least.overrides(), f"privacy.max_epsilon={budget:g}"))
    typer.echo(f"\nleast noise:  fairwave run {source} {settings}")


def _in_words(scenario: Scenario, found: Lasting) -> str:
    own, wanted = scenario.privacy.noise_multiplier or 0.0, scenario.run.num_rounds
    lasts = f"for all {wanted} rounds" if found.rounds >= wanted else f"for {found.rounds} of {wanted} rounds"
    return (
        f"as the scenario is, with noise multiplier {own:g}: the budget lasts {lasts}\n"
        f"least noise multiplier for all {wanted} rounds: {found.noise_multiplier:g}"
    )


def _shared_out(scenario: Scenario) -> int:
    from fairwave.data.sources import load_for

    return max(1, len(load_for(scenario.data).train_labels) // scenario.cell.num_devices)


def _print(proposals: list[Proposal], records: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    least = min(each.gradient_noise for each in proposals)
    table = Table(box=box.SIMPLE_HEAD)
    for name in (
        "batch",
        "steps a round",
        "steps",
        "epochs",
        "noise multiplier",
        "rate",
        "noise in gradients (x least)",
    ):
        table.add_column(name, justify="right")
    for each in proposals:
        table.add_row(
            f"{each.batch_size:,}",
            f"{each.iterations:.1f}",
            f"{each.steps:,}",
            f"{each.steps * each.batch_size / records:.1f}",
            f"{each.noise_multiplier:g}",
            f"{each.learning_rate:.3g}",
            f"{each.gradient_noise / least:.2f}",
        )
    Console().print(table)
