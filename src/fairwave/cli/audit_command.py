"""`fairwave audit`: attack the release code, and say whether it keeps what it claims."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from fairwave.cli.scenario_command import Overrides
from fairwave.errors import AuditError

if TYPE_CHECKING:
    from fairwave.audit.finding import Finding, Verdict
    from fairwave.scenario.parameters import Scenario


def audit(
    source: Annotated[
        str | None,
        typer.Argument(
            show_default=False,
            metavar="[SCENARIO]",
            help="Audit this preset or TOML file. Default: the preset fair, in both of the modes that prove something.",
        ),
    ] = None,
    overrides: Overrides = None,
    seed: Annotated[
        int,
        typer.Option(min=0, max=10**6, help="Draw the auditor's choices, simulated noise and batches from this seed."),
    ] = 0,
) -> None:
    """Run the code that federates on records of the auditor's choice, and test what it sends against what is claimed.

    If noise is added on devices, the audit runs single steps and whole rounds of the scenario's own network through
    the client that federates. It tests the size and the shape of the noise in every leaf of the model, and its
    independence across leaves, devices, rounds and steps. It tests how batches are drawn and what clipped records add
    up to, also under hostile copies of the model. It tests how well canaries show, and whether the ledger says what
    the devices did. If the access point adds the noise, the audit tests its release. This takes about half a minute.
    The exit code is 6 if a claim is refuted. Passing is no proof.

    Example:  fairwave audit fair --set privacy.noise_source=hardened
    """
    from fairwave.audit.audit import audit as verdicts

    tests: list[Finding] = []
    flagged: list[str] = []
    for scenario in _scenarios(source, overrides):
        typer.echo(
            f"\nprivacy.mode '{scenario.privacy.mode}', noise that proves from '{scenario.privacy.noise_source}'"
        )
        for verdict in verdicts(scenario, seed, _progress):
            _print(verdict)
            tests += verdict.findings
            flagged += [verdict.subject] if verdict.flagged else []
    rate = sum(finding.alarm for finding in tests)
    typer.echo(f"\n{len(tests)} tests; correct code is flagged by any of them with a probability of {rate:.0e} at most")
    if flagged:
        raise AuditError(f"audit: refuted in {', '.join(flagged)}; what is flagged above does not keep its claim")
    typer.echo("nothing refuted. That is no proof: it says that these attacks failed.")


def _scenarios(source: str | None, overrides: list[str] | None) -> list[Scenario]:
    from fairwave.audit.audit import check_claims
    from fairwave.extensions import PRIVACY_MODES
    from fairwave.scenario.loading import load_scenario

    if source is not None:
        scenario = load_scenario(source, overrides or [])
        check_claims(scenario)
        return [scenario]
    proving = [name for name, mode in PRIVACY_MODES.items() if mode.proves]
    plain = (
        "defences.aggregator=mean"  # the only one that mode 'device' has a proof for; no part of the audit looks at it
    )
    return [load_scenario("fair", [plain, *(overrides or []), f"privacy.mode={name}"]) for name in proving]


def _progress(part: str) -> None:
    """Say on a terminal what is being looked at: the first part compiles, which takes some seconds."""
    if sys.stderr.isatty():
        typer.echo(f"... {part}", err=True)


def _print(verdict: Verdict) -> None:
    typer.echo(f"\n{verdict.subject}: {'REFUTED' if verdict.flagged else 'not refuted'}")
    for finding in verdict.findings:
        rate = f"false alarms {finding.alarm:.0e}" if finding.alarm else "no false alarms"
        typer.echo(f"  {'!' if finding.flagged else ' '} {finding.test}: {finding.looks_at}")
        typer.echo(f"      {finding.measured}; claimed {finding.claimed}; p = {finding.probability:.2g}, {rate}")
