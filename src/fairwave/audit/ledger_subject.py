"""The ledger against the devices' own diaries: steps, kinds of release, epsilon, repeated questions and the budget."""

from __future__ import annotations

import numpy as np

from fairwave.audit.audit_setting import DEVICES, HALF_HOLDING, OWN_NOISE, AuditSetting
from fairwave.audit.audited_cell import HOLDINGS, Change, audited
from fairwave.audit.device_bench import AuditedDevice, Records
from fairwave.audit.finding import Finding, Verdict, exact
from fairwave.audit.known_records import blank_records, silent_copy
from fairwave.audit.loss_oracle import epsilon_from_below
from fairwave.double_precision import double_precision
from fairwave.federate.protocol import Answer, Phase, Status
from fairwave.federate.step_charges import Asked, PerTry, StepCharges
from fairwave.learning.models import count_parameters
from fairwave.learning.named_arrays import NamedArrays
from fairwave.privacy.accounting import Releases, epsilon_of
from fairwave.privacy.ledger import RoundMessages
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.spending import Account, Spending

ROUNDS, AFFORDABLE = 5, 3
"""Rounds on the ledger, and steps that the budget of the last part covers."""
WHO = (0, HALF_HOLDING)


def ledger(setting: AuditSetting) -> Verdict:
    """A verdict on what the access point's ledger says of devices whose steps the auditor has counted."""
    copy, dark = _copy_and_records(setting)
    devices = {index: setting.device("ledger", index, dark, OWN_NOISE) for index in WHO}
    answers = [{index: device.ask(number, copy)[0] for index, device in devices.items()} for number in range(ROUNDS)]
    accounts = _accounts(setting, answers)
    own = {index: _sampled(device.charged()) for index, device in devices.items()}
    findings = [_diaries(answers[-1], accounts, own), _kinds(setting, accounts), _epsilon(setting, accounts)]
    again = setting.device("ledger", WHO[0], dark, OWN_NOISE)  # the same state file: a client that was restarted
    findings += [_repeated(again, answers[-1][WHO[0]], copy), _other_copy(again, answers[-1][WHO[0]], copy)]
    if not setting.scenario.learning.gradient_exchange:
        findings.append(_budget(setting))
    return Verdict("ledger and diaries", findings)


def _copy_and_records(setting: AuditSetting) -> tuple[NamedArrays, Records]:
    learning = setting.scenario.learning
    return silent_copy(setting.model, learning), blank_records(learning, HOLDINGS * setting.batch)


def _accounts(setting: AuditSetting, answers: list[dict[int, Answer]]) -> dict[int, Account]:
    """What the access point's ledger holds after these rounds, charged as in a federation."""
    scenario = audited(setting.scenario, setting.seed, OWN_NOISE)
    with double_precision():
        mode = mode_of(scenario.privacy)
        enforced = mode.enforcement(scenario, setting.counts, count_parameters(setting.model))
    charges, spending = StepCharges(DEVICES), Spending()
    one, nobody = np.ones(DEVICES, np.int64), np.zeros(0, np.int64)
    exchanges = int(scenario.learning.gradient_exchange)
    per_try = PerTry(one, one, exchanges)
    for given in answers:
        asked: Asked = {Phase.GRADIENT: dict.fromkeys(given, exchanges), Phase.UPDATE: dict.fromkeys(given, 1)}
        charge = charges.charge(given, asked, per_try)
        sent = np.asarray([index for index, answer in given.items() if answer.status is Status.SENT])
        messages = RoundMessages(
            invited=sent,
            sent=sent,
            delivered=sent,
            served=nobody,
            copy_std=np.zeros(0),
            update_std=0.0,
            steps=charge.steps,
            gradients=charge.gradients,
            exchanged_gradients=scenario.learning.gradient_exchange,
            reported_losses=False,
        )
        spending.add(event for event in mode.events(enforced, messages) if event.basis == "data")
    return spending.accounts()


def _sampled(releases: Releases) -> int:
    """Local steps among releases: exchanged gradients are over all records."""
    return sum(count for (_, sampling), count in releases.items() if sampling < 1.0)


def _diaries(last: dict[int, Answer], accounts: dict[int, Account], own: dict[int, int]) -> Finding:
    charged = {index: _sampled(accounts[index].releases) if index in accounts else 0 for index in WHO}
    spent = {index: last[index].spent for index in WHO}
    return exact(
        "steps charged",
        f"local steps over {ROUNDS} rounds of one step: on the ledger, in the devices' states and accounts, and made",
        f"ledger {list(charged.values())}, states {list(spent.values())}, accounts {list(own.values())}",
        f"{ROUNDS} each",
        all(charged[index] == spent[index] == own[index] == ROUNDS for index in WHO),
    )


def _kinds(setting: AuditSetting, accounts: dict[int, Account]) -> Finding:
    multiplier = setting.scenario.privacy.noise_multiplier or 0.0
    wanted = {index: (multiplier, setting.batch / int(setting.counts[index])) for index in WHO}
    found = {index: [kind for kind in accounts[index].releases if kind[1] < 1.0] for index in WHO if index in accounts}
    return exact(
        "kinds of release",
        "noise multiplier and sampling probability under which the ledger charges steps",
        "; ".join(f"{z:g} at {q:g}" for kinds in found.values() for z, q in kinds),
        "; ".join(f"{z:g} at {q:g}" for z, q in wanted.values()),
        all(len(found.get(i, [])) == 1 and np.allclose(found[i][0], wanted[i], rtol=1e-9) for i in WHO),
    )


def _epsilon(setting: AuditSetting, accounts: dict[int, Account]) -> Finding:
    delta = setting.scenario.privacy.delta
    told = {index: account.epsilon(delta) for index, account in accounts.items()}
    multiplier = setting.scenario.privacy.noise_multiplier or 0.0
    least = {i: epsilon_from_below(multiplier, setting.batch / int(setting.counts[i]), ROUNDS, delta) for i in WHO}
    return exact(
        "epsilon of the ledger",
        "whether the ledger's epsilon is at least a bound from below, computed by other code",
        ", ".join(f"{epsilon:.4f}" for epsilon in told.values()),
        ", ".join(f"at least {epsilon:.4f}" for epsilon in least.values()),
        all(told.get(index, 0.0) >= least[index] for index in WHO),
    )


def _repeated(device: AuditedDevice, before: Answer, copy: NamedArrays) -> Finding:
    again, _ = device.ask(before.round, copy)
    same = _nothing_new(before, again)
    return exact(
        "a repeated question",
        "whether a device that was restarted and is asked the same again sends the same bits, at no charge",
        f"{'the same' if same else 'other'} bits, {again.spent - before.spent} steps more",
        "the same bits, 0 steps more",
        same and again.spent == before.spent,
    )


def _other_copy(device: AuditedDevice, before: Answer, copy: NamedArrays) -> Finding:
    other = {name: leaf + np.float32(1.0) for name, leaf in copy.items()}
    again, _ = device.ask(before.round, other)
    return exact(
        "another copy in a round",
        "whether a device that is sent a second copy for one round keeps its data to itself, or charges",
        f"status '{again.status}', {again.spent - before.spent} steps more",
        "nothing new sent, or charged",
        _nothing_new(before, again) or again.spent > before.spent,
    )


def _nothing_new(before: Answer, again: Answer) -> bool:
    """Whether a second answer sends nothing, or what the first has sent."""
    if again.values is None:
        return True
    return before.values is not None and np.array_equal(before.values, again.values)


def _budget(setting: AuditSetting) -> Finding:
    """Whether a device rests before its budget is exceeded, by the bound from below."""
    privacy = setting.scenario.privacy
    multiplier, sampling = privacy.noise_multiplier or 0.0, 1.0 / HOLDINGS
    limit = epsilon_of({(multiplier, sampling): AFFORDABLE}, privacy.delta) * 1.001
    copy, dark = _copy_and_records(setting)
    device = setting.device("budget", 0, dark, Change(max_epsilon=limit))
    answers = [device.ask(number, copy)[0] for number in range(2 * AFFORDABLE)]
    sent = sum(answer.values is not None for answer in answers)
    spent = epsilon_from_below(multiplier, sampling, sent, privacy.delta)
    return exact(
        "budget",
        f"whether a device rests before privacy.max_epsilon, here {limit:.4f}, is exceeded",
        f"{sent} steps sent, which cost at least {spent:.4f}",
        f"{limit:.4f} at most",
        spent <= limit,
    )
