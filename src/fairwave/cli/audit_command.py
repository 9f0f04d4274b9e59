"""`fairwave audit`: attack the release code, and say whether it keeps what it claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.scenario_command import Overrides
from fairwave.errors import AuditError

if TYPE_CHECKING:
    from fairwave.audit.audit import Verdict
    from fairwave.scenario.parameters import Scenario


def audit(
    source: Annotated[
        str | None,
        typer.Argument(
            show_default=False,
            metavar="[SCENARIO]",
            help="A preset or a TOML file. Default: the preset fair, in both of the modes that prove something.",
        ),
    ] = None,
    overrides: Overrides = None,
    canaries: Annotated[
        int, typer.Option(min=100, max=4_000, help="Planted records or devices, of which a random half is in.")
    ] = 1_000,
    epsilon: Annotated[
        float, typer.Option(min=0.1, max=20.0, help="Total that the audited releases claim; noise is set to match it.")
    ] = 2.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the coin flips, and of simulated noise.")] = 0,
) -> None:
    """Plant canaries, run the release code itself, and test what comes out against what is claimed.

    Tests the size of the noise, its independence across rounds, what a coalition can average away, and how well the
    canaries show: by an estimate for Gaussian noise and by a bound that assumes nothing. Exits with 6 if a claim is
    refuted. Passing is no proof: it means that these attacks failed.

    Example:  fairwave audit fair --set privacy.noise_source=hardened
    """
    from fairwave.audit.audit import ALARM, RELEASES
    from fairwave.audit.audit import audit as verdicts

    scenarios = _scenarios(source, overrides)
    typer.echo(
        f"{canaries} canaries, {RELEASES} releases that claim epsilon {epsilon:g} in all; each test raises a false "
        f"alarm with probability {ALARM:g}"
    )
    flagged = []
    for scenario in scenarios:
        typer.echo(
            f"\nprivacy.mode '{scenario.privacy.mode}', noise that proves from '{scenario.privacy.noise_source}'"
        )
        for verdict in verdicts(scenario, canaries, epsilon, seed):
            _print(verdict)
            flagged += [verdict.subject] if verdict.flagged else []
    if flagged:
        raise AuditError(f"audit: refuted in {', '.join(flagged)}; what is flagged above does not keep its claim")
    typer.echo("\nnothing refuted. That is no proof: it says that these attacks failed.")


def _scenarios(source: str | None, overrides: list[str] | None) -> list[Scenario]:
    from fairwave.audit.audit import check_claims
    from fairwave.extensions import PRIVACY_MODES
    from fairwave.scenario.loading import load_scenario

    if source is not None:
        scenario = load_scenario(source, overrides or [])
        check_claims(scenario)
        return [scenario]
    proving = [name for name, mode in PRIVACY_MODES.items() if mode.proves]
    return [load_scenario("fair", [*(overrides or []), f"privacy.mode={name}"]) for name in proving]


def _print(verdict: Verdict) -> None:
    typer.echo(f"{verdict.subject}: {'REFUTED' if verdict.flagged else 'not refuted'}")
    for finding in verdict.findings:
        mark = "!" if finding.flagged else " "
        beside = f"claimed {finding.claimed:10} p = {finding.probability:.2g}"
        typer.echo(f"  {mark} {finding.test:26} {finding.measured:27} {beside}")
