"""`fairwave privacy`: what a run has released, to whom, and what is proved about it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import typer

from fairwave.cli.arguments import RunFolder

if TYPE_CHECKING:
    from fairwave.runs.order import Order


def privacy(run: RunFolder) -> None:
    """Account for a run: epsilon per audience from its ledger, and what the paper quotes beside it.

    A message whose sensitivity the code does not enforce costs infinity, whatever its noise: no guarantee is printed
    that is not proved.

    Example:  fairwave privacy runs/paper
    """
    from fairwave.privacy.exposure import exposures
    from fairwave.runs.store import RunStore

    store = RunStore(run)
    order, delta = store.order, store.order.scenario.privacy.delta
    typer.echo(
        f"one training record of one device (replaced by another), at delta {delta:g}, seed by seed the largest\n"
    )
    for scheme in order.schemes:
        typer.echo(scheme)
        seen = [
            exposures([event for _, event in store.releases(track)], delta)
            for track in order.tracks()
            if track.scheme == scheme and store.summary(track).rounds
        ]
        for several in zip(*seen, strict=True):
            worst = max(several, key=lambda one: (one.epsilon, one.messages))
            cost = "infinite" if math.isinf(worst.epsilon) else f"{worst.epsilon:.3f}"
            typer.echo(f"  {worst.audience}: epsilon {cost} after {worst.messages} messages")
            if worst.reason:
                typer.echo(f"    {worst.reason}")
    rounds = max(store.summary(track).rounds for track in order.tracks())
    store.close()
    if rounds and order.scenario.privacy.mode == "paper":
        _print_nominal(order, rounds)


def _print_nominal(order: Order, rounds: int) -> None:
    """What the paper's numbers would add up to."""
    import jax.numpy as jnp

    from fairwave.privacy.gaussian import classical_noise_multiplier
    from fairwave.privacy.nominal import SENTENCE, nominal

    budget, copies = order.scenario.privacy, order.scenario.cell.num_devices
    multiplier = float(classical_noise_multiplier(jnp.asarray(budget.epsilon), budget.delta))
    total = nominal(
        multiplier,
        epsilon=budget.epsilon,
        delta=budget.delta,
        rounds=rounds,
        num_devices=copies,
        nested=budget.copies == "nested",
    )
    alone, pooled = f"{total.exact:.2f} at delta {total.delta:g}", f"{total.coalition:.2f} at delta {total.delta:g}"
    basic, strong = (f"{epsilon:.1f} at delta {delta:.2g}" for epsilon, delta in (total.basic, total.strong))
    lines = (
        f"\n{SENTENCE}",
        f"If {budget.sensitivity:g} were a true bound, {rounds} rounds at nominal epsilon {budget.epsilon:g} would be, "
        "for a device that never deviates:",
        f"  nominal epsilon {alone} for its own copies (exact composition)",
        f"  nominal epsilon {pooled} if all {copies} devices pool their copies ({budget.copies})",
        f"  nominal epsilon {basic} by basic composition, as the paper quotes",
        f"  nominal epsilon {strong} by strong composition with the term that the paper leaves out",
    )
    typer.echo("\n".join(lines))
