"""Disks that fill up, the access point's and the devices': errors name the remedy, and with space again all goes on."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.errors import OutputError
from fairwave.federate import client_state, device_account, server_run
from fairwave.federate.client_state import DIGEST
from fairwave.federate.settings import Settings
from fairwave.runs.faults import Fault
from fairwave.runs.packing import unpack
from tests.federate.parties import federated, tiny

pytestmark = pytest.mark.faults

PRIVATE = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset")
HARDENED = Settings(energy="model", deadline_s=30.0, quorum=0.3, patience=1)
CODES = {"OutputError": 4, "FederationError": 7}
REMEDIES = ("free some space", "make room", "correct that and start it again", "choose a writable folder")


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _steps_in(path: Path) -> int:
    return int(unpack(path.read_bytes().split(b"\n", 1)[1][DIGEST:])["spent"])


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_tenth_of_a_run_costs_nothing_but_time(tmp_path: Path) -> None:
    """On a real file system of its own, which needs a mount name space; devices' states are on it too."""
    (tmp_path / "disk").mkdir()
    tried = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "disk")]
    if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    command = ["unshare", "-rm", sys.executable, "-m", "tests.federate.full_disk", str(tmp_path / "disk")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    tries = [line for line in lines if "tenth" in line]
    assert [(line["kind"], line["tenth"]) for line in tries] == [
        (kind, tenth) for kind in ("repeatable", "hardened") for tenth in range(1, 11)
    ]
    assert sum(bool(line["full"]) for line in tries) >= 18  # a run that takes 100 % may or may not fit
    for line in tries:
        if line["full"]:
            assert line["full"]["exit_code"] == CODES[line["full"]["error"]], line
            assert any(remedy in line["full"]["text"] for remedy in REMEDIES), line
            assert "\n" not in line["full"]["text"]
        assert line["again"] == {}, line
        if line["kind"] == "repeatable":
            assert line["same"], line
        else:
            assert all(charged >= released for charged, released in zip(line["charged"], line["released"], strict=True))
            assert min(line["released"]) > 0


@pytest.mark.parametrize("writes", [0, 1], ids=["before it has trained", "after it has trained"])
def test_a_device_whose_state_cannot_be_written_says_so_and_releases_nothing_uncharged(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Device 1's disk is full while it answers round 2, from its first or its second write on."""
    left, sent, honest = [-1], list[bool](), client_state.replace_file

    def runs_out(path: Path, content: bytes) -> None:
        if left[0] == 0:
            _full()
        left[0] -= 1
        honest(path, content)

    def meddle(app: ClientApp, message: Message, context: Context) -> Message:
        mine = int(context.node_config["partition-id"]) == 1 and message.metadata.group_id == "1"
        left[0] = writes if mine else -1
        reply = app(message, context)
        left[0] = -1
        if mine:
            sent.append("arrays" in reply.content)
        return reply

    monkeypatch.setattr(client_state, "replace_file", runs_out)
    folder = tmp_path / "run"
    held = federated(tiny(*PRIVATE, preset="fair-mlp", rounds=3), folder, HARDENED, meddle)
    assert sent == [False]
    assert held.records[1]["update_fault"].tolist() == [0, int(Fault.FAILED), 0]
    assert '"device": 1, "why": "state"' in (folder / "federation.jsonl").read_text("utf-8")
    assert held.records[2]["delivered"].all()
    charged = np.sum([event.steps for event in held.of("update")], axis=0)
    states = sorted((folder / "devices").rglob("*.state"))
    assert charged[0] == _steps_in(states[0])
    assert charged[1] > _steps_in(states[1]) > 0


def test_a_device_whose_account_cannot_be_written_releases_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = device_account.replace_file

    def meddle(app: ClientApp, message: Message, context: Context) -> Message:
        mine = int(context.node_config["partition-id"]) == 1 and message.metadata.group_id == "1"
        device_account.replace_file = _full if mine else honest
        reply = app(message, context)
        device_account.replace_file = honest
        assert not mine or "arrays" not in reply.content
        return reply

    monkeypatch.setattr(device_account, "replace_file", honest)  # put back whatever happens
    held = federated(tiny(*PRIVATE, preset="fair-mlp", rounds=2), tmp_path / "run", HARDENED, meddle)
    assert held.records[1]["update_fault"].tolist() == [0, int(Fault.FAILED), 0]


def test_files_beside_the_run_that_cannot_be_written_are_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched, pytest.raises(OutputError, match=r"release\.key: cannot be written \(No sp"):
        patched.setattr(server_run, "replace_file", _full)
        federated(tiny(rounds=1), tmp_path / "run", HARDENED)
    federated(tiny(rounds=1), tmp_path / "run", HARDENED)
    with (
        monkeypatch.context() as patched,
        pytest.raises(OutputError, match=r"asked-proposed-0\.json: .*free some space"),
    ):
        patched.setattr(server_run, "replace_file", _full)
        federated(tiny(rounds=2), tmp_path / "run", HARDENED)
    assert len(federated(tiny(rounds=2), tmp_path / "run", HARDENED).records) == 2
