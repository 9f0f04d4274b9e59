"""One account for a device's records: no name, scenario, scheme or second federation gives it a second budget."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import numpy as np
import pytest

from fairwave.data.sources import load
from fairwave.errors import FederationError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client import DeviceClient
from fairwave.federate.client_app import app_of
from fairwave.federate.device_account import DeviceAccount
from fairwave.federate.in_process import federate_in_process
from fairwave.federate.protocol import Answer, Phase, Reason, Status, Task
from fairwave.federate.settings import Settings
from fairwave.federate.setup import device_client
from fairwave.privacy.accounting import epsilon_of
from fairwave.privacy.privacy_filter import Budget
from tests.federate.parties import TRACK, outcome, tiny

HARDENED = Settings(telemetry=True, energy="model", quorum=0.3, patience=1)
PRIVATE = ("privacy.noise_source=hardened", "data.samples_per_device=600", "defences.use=[]")
BUDGET = Budget(1.5, 1e-5)
KIND, OTHER = (1.3, 16 / 600), (2.0, 16 / 600)
COPY = np.zeros(7850, np.float32)


def _ask(client: DeviceClient, number: int, copy: np.ndarray = COPY, name: str = "0" * 16) -> Answer:
    return client.answer(Task(name, *TRACK, client.agreement, number, Phase.UPDATE, 0.0, -1, -1, copy, None))


def _client(folder: Path, *overrides: str, name: str = "state", own: Budget | None = None) -> DeviceClient:
    order = tiny(*PRIVATE, *overrides, preset="fair-mlp", rounds=30)
    where = folder / name / "own.state"
    return device_client(order, HARDENED, TRACK, 0, load("mnist"), where, account=folder / "account", own_budget=own)


def test_charges_stop_at_the_budget_and_outlive_the_program(tmp_path: Path) -> None:
    account = DeviceAccount(tmp_path, (BUDGET,))
    allowed = account.allowance(KIND)
    assert allowed is not None
    assert account.charge(KIND, allowed)
    assert not account.charge(KIND, 1)
    assert not DeviceAccount(tmp_path).charge(KIND, 1)  # another program, which knows of no budget
    assert epsilon_of(account.entries().releases, 1e-5) <= 1.5


def test_no_budget_outlives_a_message_without_proof(tmp_path: Path) -> None:
    account = DeviceAccount(tmp_path)
    assert account.charge_unproven()
    limited = DeviceAccount(tmp_path, (BUDGET,))
    assert limited.allowance(KIND) == 0
    assert not limited.charge_unproven()


def test_programs_that_charge_at_once_do_not_overspend(tmp_path: Path) -> None:
    allowed = DeviceAccount(tmp_path, (BUDGET,)).allowance(KIND) or 0
    granted: list[bool] = []

    def spend() -> None:
        own = DeviceAccount(tmp_path)
        granted.extend(own.charge(KIND, allowed // 20) for _ in range(10))

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 20
    assert len(granted) == 40


@pytest.mark.parametrize("change", ["cut", "edited", "empty"])
def test_a_damaged_account_is_refused(change: str, tmp_path: Path) -> None:
    account = DeviceAccount(tmp_path, (BUDGET,))
    account.charge(KIND, 100)
    path = tmp_path / "account.json"
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-9], "edited": whole.replace(b"100", b"001"), "empty": b""}[change])
    with pytest.raises(FederationError, match=r"account\.json: damaged"):
        account.charge(KIND, 1)


def test_an_account_is_private_and_holds_no_record(tmp_path: Path) -> None:
    DeviceAccount(tmp_path / "own", (BUDGET,)).charge(KIND, 5)
    assert {path.name for path in (tmp_path / "own").iterdir()} == {"account.json", "lock"}
    for path in (tmp_path / "own", *(tmp_path / "own").iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_two_federations_on_the_same_data_share_one_budget(tmp_path: Path) -> None:
    """Both run to their ends, on the same devices: together they stay within what one was promised."""
    order = tiny(*PRIVATE, "privacy.max_epsilon=1.5", preset="fair-mlp", rounds=30)
    agreement, home = Agreement(order, HARDENED), tmp_path / "home"
    steps = []
    for name in ("one", "two"):
        with contextlib.suppress(FederationError):  # nobody can take part
            federate_in_process(agreement, tmp_path / name, "test", app=app_of(lambda: agreement, home))
        held = outcome(tmp_path / name) if (tmp_path / name / "run.sqlite").exists() else None
        steps.append(sum(int(event.steps[event.devices == 0].sum()) for event in held.of("update")) if held else 0)
    assert steps[0] > 100
    assert epsilon_of({KIND: sum(steps)}, 1e-5) <= 1.5


def test_a_scenario_that_changes_under_the_same_name_is_refused_by_the_device(tmp_path: Path) -> None:
    before = _client(tmp_path, "privacy.max_epsilon=1.5")
    assert _ask(before, 0).status is Status.SENT
    changed = _client(tmp_path, "privacy.max_epsilon=1.5", "privacy.noise_multiplier=0.3")
    answer = _ask(changed, 1)
    assert (answer.status, answer.reason, answer.values) == (Status.FAILED, Reason.CHANGED_AGREEMENT, None)
    assert _ask(before, 1).status is Status.SENT
    longer = tiny(*PRIVATE, "privacy.max_epsilon=1.5", preset="fair-mlp", rounds=60)
    more = device_client(
        longer, HARDENED, TRACK, 0, load("mnist"), tmp_path / "state" / "own.state", account=tmp_path / "account"
    )
    assert _ask(more, 2).reason is not Reason.CHANGED_AGREEMENT  # how long it goes on may change


def test_other_noise_under_another_name_spends_from_the_same_budget(tmp_path: Path) -> None:
    """A part of the budget goes to one federation, the rest to others with other noise: in loss, not in steps."""
    _ask(_client(tmp_path, "privacy.max_epsilon=4"), 0)
    for name, multiplier in (("second", 4.0), ("third", 2.0), ("fourth", 0.5)):
        client = _client(tmp_path, "privacy.max_epsilon=4", f"privacy.noise_multiplier={multiplier}", name=name)
        for number in range(2):
            if _ask(client, number).status is not Status.SENT:
                break
    spent = DeviceAccount(tmp_path / "account").entries().releases
    assert len(spent) >= 3
    assert (0.5, 16 / 600) not in spent  # one round of that would cost more than all that is left
    assert 0.5 < epsilon_of(spent, 1e-5) <= 4.0


def test_an_owners_budget_holds_whatever_federations_agree_on(tmp_path: Path) -> None:
    client = _client(tmp_path, "privacy.max_epsilon=8", own=Budget(1.0, 1e-5))
    asked = [_ask(client, number) for number in range(12)]
    spent = max(answer.spent for answer in asked)
    assert asked[-1].status is Status.RESTING
    assert asked[-1].exhausted
    assert spent > 0
    assert epsilon_of({KIND: spent}, 1e-5) <= 1.0


def test_a_device_with_a_budget_takes_no_part_where_nothing_is_proved(tmp_path: Path) -> None:
    order = tiny(preset="paper-clean", rounds=2)
    client = device_client(
        order, HARDENED, TRACK, 0, load("mnist"), tmp_path / "s", account=tmp_path / "a", own_budget=BUDGET
    )
    answer = client.answer(Task("0" * 16, *TRACK, client.agreement, 0, Phase.GRADIENT, 0.0, -1, -1, COPY, None))
    assert (answer.status, answer.values) == (Status.RESTING, None)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda copy: np.append(copy[:-1], np.float32(np.nan)),
        lambda copy: np.append(copy[:-1], np.float32(np.inf)),
        lambda copy: np.full_like(copy, 1.8e19),
        lambda copy: copy[:-1],
        lambda copy: np.append(copy, np.float32(0.0)),
        lambda copy: copy.reshape(785, 10),
        lambda copy: copy.reshape(1, -1),
        lambda copy: copy.astype(np.float64),
        lambda copy: copy.astype(">f4"),
        lambda copy: copy.astype(object),
        lambda copy: np.zeros((), np.float32),
        lambda copy: {"0.weight": copy},
    ],
)
def test_copies_that_no_honest_access_point_sends_are_refused(spoil: object, tmp_path: Path) -> None:
    client = _client(tmp_path, "privacy.max_epsilon=1.5")
    answer = _ask(client, 0, spoil(COPY))
    assert (answer.status, answer.reason, answer.values) == (Status.FAILED, Reason.REFUSED_COPY, None)
    assert not (tmp_path / "state" / "own.state").exists()
    assert DeviceAccount(tmp_path / "account").entries().releases == {}


def test_a_deviation_that_is_none_is_refused(tmp_path: Path) -> None:
    client = _client(tmp_path, "privacy.max_epsilon=1.5")
    for deviation in (float("nan"), float("inf"), -0.1, 1.5):
        answer = client.answer(Task("0" * 16, *TRACK, client.agreement, 0, Phase.UPDATE, deviation, -1, -1, COPY, None))
        assert answer.reason is Reason.REFUSED_COPY


def test_another_seed_does_not_hide_a_changed_scenario(tmp_path: Path) -> None:
    """The agreement is the federation's, not that of one of its state files."""
    assert _ask(_client(tmp_path), 0).status is Status.SENT
    order = tiny(*PRIVATE, "privacy.noise_multiplier=2.0", "run.seed=1", preset="fair-mlp", rounds=30)
    other = device_client(
        order, HARDENED, TRACK, 0, load("mnist"), tmp_path / "state" / "another.state", account=tmp_path / "account"
    )
    assert _ask(other, 0).reason is Reason.CHANGED_AGREEMENT


def test_two_programs_of_one_device_answer_one_after_the_other(tmp_path: Path) -> None:
    """Each counts the other's steps: together they report what both have sent."""
    clients = [_client(tmp_path) for _ in range(2)]
    copies = [COPY, COPY + np.float32(0.5)]
    answers: list[Answer] = []

    def work(which: int) -> None:
        answers.append(_ask(clients[which], which, copies[which]))

    threads = [threading.Thread(target=work, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    charged = sum(DeviceAccount(tmp_path / "account").entries().releases.values())
    assert max(answer.spent for answer in answers) == charged > 0
