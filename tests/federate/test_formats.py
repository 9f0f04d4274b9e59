"""A federation outlives an upgrade: files of the format before are read, and files of a later one are refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fairwave.data import sources
from fairwave.errors import FederationError
from fairwave.federate import answering
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.client_state import DIGEST, FORMAT, ClientStateFile
from fairwave.federate.device_account import DeviceAccount
from fairwave.federate.in_process import federate_in_process
from fairwave.policy.effort_fit import EffortMemory, no_memory
from fairwave.policy.fleet import fleet
from fairwave.runs.packing import pack, unpack
from fairwave.runs.store import RunStore
from fairwave.runs.unfinished import read_unfinished
from fairwave.scenario.per_device import DeviceValues
from tests.data.write_federation import SETTINGS, scenario
from tests.federate.parties import outcome

BEFORE = Path(__file__).parent.parent / "data" / "federation-format-6"


def _state_before() -> Path:
    return next((BEFORE / "run" / "devices" / "device-1").rglob("*.state"))


@pytest.fixture
def first() -> EffortMemory:
    held = scenario("mnist")
    return no_memory(fleet(held, DeviceValues(held)).effort, held.utility.effort_window)


def test_a_state_of_format_1_is_read_and_begins_a_new_count(first: EffortMemory, tmp_path: Path) -> None:
    path = tmp_path / "own.state"
    shutil.copy(_state_before(), path)
    held = unpack(path.read_bytes()[DIGEST:])
    state = ClientStateFile(path, first, None).read()
    assert (state.round, state.secret) == (int(held["round"]), int(held["secret"]))
    assert state.update is not None
    assert np.array_equal(state.update["0.weight"], held["update/0.weight"])
    assert int(held["spent"]) > 0
    assert (state.spent, state.update_asks, state.ask) == (0, 0, 0)  # under a name that no access point knows
    assert state.name != int(held["name"])
    ClientStateFile(path, first, None).write(state)
    assert path.read_bytes().startswith(b"fairwave client state 2\n")
    again = ClientStateFile(path, first, None).read()
    assert (again.name, again.round, again.question) == (state.name, state.round, state.question)


def test_a_damaged_state_of_either_format_is_refused(first: EffortMemory, tmp_path: Path) -> None:
    path = tmp_path / "own.state"
    old = _state_before().read_bytes()
    path.write_bytes(old)
    ClientStateFile(path, first, None).write(ClientStateFile(path, first, None).read())
    for whole in (old, path.read_bytes()):
        for place in (0, 21, 23, 30, 200, len(whole) - 1):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            with pytest.raises(FederationError, match=r"own\.state: (damaged|format 3)"):
                ClientStateFile(path, first, None).read()


def test_a_state_of_a_later_format_is_refused_with_the_remedy(first: EffortMemory, tmp_path: Path) -> None:
    path, line = tmp_path / "own.state", f"fairwave client state {FORMAT + 1}\n".encode()
    packed = pack({"anything": np.zeros(3)})
    path.write_bytes(line + hashlib.blake2b(line + packed, digest_size=DIGEST).digest() + packed)
    with pytest.raises(
        FederationError, match=r"own\.state: format 3, this version reads 1 to 2; use the fairwave that"
    ):
        ClientStateFile(path, first, None).read()


def test_an_account_of_a_later_format_is_refused_with_the_remedy(tmp_path: Path) -> None:
    shutil.copy(BEFORE / "run" / "devices" / "device-1" / "account" / "account.json", tmp_path)
    assert sum(DeviceAccount(tmp_path).entries().releases.values()) > 0
    held = json.loads((tmp_path / "account.json").read_bytes())
    (tmp_path / "account.json").write_text(json.dumps({**held, "format": 2, "new": []}))
    with pytest.raises(FederationError, match=r"account\.json: format 2, this version reads 1; use the fairwave that"):
        DeviceAccount(tmp_path).charge((1.0, 0.1), 1)


def test_a_round_that_the_version_before_left_unfinished_is_counted(tmp_path: Path) -> None:
    (tmp_path / "asked.json").write_text('{"round": 4, "tries": [[0, 2], [2, 1]], "at_worst": []}')
    begun = read_unfinished(tmp_path / "asked.json")
    assert begun is not None
    assert begun.asked == {"gradient": {0: 2, 2: 1}, "update": {0: 2, 2: 1}}


def test_a_federation_of_the_version_before_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rounds stay, its devices keep their states, and the ledger goes on from what it held."""
    shutil.copytree(BEFORE, tmp_path / "federation")
    monkeypatch.chdir(tmp_path / "federation")
    before = outcome(Path("run"))
    spent = {k: int(unpack(path.read_bytes()[DIGEST:])["spent"]) for k, path in enumerate(_states())}
    store = RunStore(Path("run"))
    agreed = Agreement(dataclasses.replace(store.order, rounds=4), SETTINGS)
    store.close()
    # The scenario names its data by the path that they had when the run began.
    own = sources.load("data.npz")
    monkeypatch.setattr(answering, "load_for", lambda data, place: own)
    monkeypatch.setattr(sources, "load_for", lambda data: own)
    federate_in_process(agreed, Path("run"), "test", app=app_of(lambda: agreed, Path("run/devices")))
    after = outcome(Path("run"))
    assert len(after.records) == 4
    for old, new in zip(before.records, after.records, strict=False):
        assert all(np.array_equal(old[name], new[name], equal_nan=old[name].dtype.kind == "f") for name in old)
    assert after.records[-1]["delivered"].all()
    charged = np.sum([event.steps for event in after.of("update")], axis=0)
    for device, path in enumerate(_states()):
        since = int(unpack(path.read_bytes().split(b"\n", 1)[1][DIGEST:])["spent"])
        assert since > 0
        assert charged[device] == spent[device] + since


def _states() -> list[Path]:
    return sorted(Path("run/devices").rglob("*.state"))
