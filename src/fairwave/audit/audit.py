"""The whole audit of what a scenario claims."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fairwave.audit.audit_setting import AuditSetting
from fairwave.audit.batch_subject import batches
from fairwave.audit.canary_subject import canaries
from fairwave.audit.central_subject import CentralSubject
from fairwave.audit.clipping_subject import clipping
from fairwave.audit.copies_coalition import CopiesSubject
from fairwave.audit.finding import Verdict
from fairwave.audit.hostile_subject import hostile_copies
from fairwave.audit.ledger_subject import ledger
from fairwave.audit.noise_subject import noise_in_rounds, noise_in_steps
from fairwave.errors import ScenarioError
from fairwave.extensions import PRIVACY_MODES, SCHEMES
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.parameters import Scenario

Part = Callable[[AuditSetting], list[Verdict]]
ON_DEVICES: dict[str, Part] = {
    "noise of single steps": noise_in_steps,
    "noise of whole rounds": noise_in_rounds,
    "batches": batches,
    "clipping": lambda setting: [clipping(setting)],
    "hostile copies": lambda setting: [hostile_copies(setting)],
    "canaries": lambda setting: [canaries(setting)],
    "ledger": lambda setting: [ledger(setting)],
    "copies of the model": lambda setting: [_copies(setting)],
}
"""Parts of the audit where noise is added on devices."""
AT_THE_ACCESS_POINT: dict[str, Part] = {"release by the access point": lambda setting: [_central(setting)]}
"""Parts of the audit where noise is added by the access point."""


def check_claims(scenario: Scenario) -> None:
    """Refuse a scenario that claims nothing, or whose records the audit cannot make up."""
    if not mode_of(scenario.privacy).proves:
        proving = " or ".join(f"'{name}'" for name, mode in PRIVACY_MODES.items() if mode.proves)
        raise ScenarioError(
            f"privacy.mode: '{scenario.privacy.mode}' claims nothing, so that there is nothing to audit; choose "
            f"{proving}, such as in the preset 'fair'"
        )
    if scenario.data.target == "number" and parts_of(scenario) is ON_DEVICES:
        raise ScenarioError(
            "data.target: 'number', and the audit of devices makes up records that have classes; audit the same "
            "privacy parameters with data.target 'class' and model 'mlp', whose batches, clipping and noise are the "
            "same code"
        )


def parts_of(scenario: Scenario) -> dict[str, Part]:
    """The parts of the audit that the scenario's claims call for, by name."""
    return AT_THE_ACCESS_POINT if mode_of(scenario.privacy).trusts_access_point else ON_DEVICES


def audit(scenario: Scenario, seed: int = 0, on_part: Callable[[str], None] = lambda name: None) -> Iterator[Verdict]:
    """A verdict on each part of the code that the scenario's claims rest on, one after the other.

    `on_part` hears the name of each part before it begins.
    """
    with tempfile.TemporaryDirectory(prefix="fairwave-audit-") as folder:
        setting = AuditSetting(scenario, seed, Path(folder))
        for name, part in parts_of(scenario).items():
            on_part(name)
            yield from part(setting)


def _copies(setting: AuditSetting) -> Verdict:
    return CopiesSubject(SCHEMES["proposed"], setting.scenario.privacy).verdict(setting.seed)


def _central(setting: AuditSetting) -> Verdict:
    return CentralSubject(SCHEMES["max_power"], setting.scenario.privacy).verdict(setting.seed)
