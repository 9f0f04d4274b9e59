"""How a federation stands, as its operator sees it: from the log and the store, and no more than they prove."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from typer.testing import CliRunner

from fairwave.cli.main import app
from fairwave.errors import StoreError
from fairwave.federate.fleet_status import FleetStatus, fleet_status
from fairwave.federate.server_run import log_line
from fairwave.federate.settings import Settings
from fairwave.federate.status_table import as_document, as_table
from fairwave.report.privacy_account import run_account
from fairwave.runs.database import is_held, locked
from fairwave.runs.store import RunStore
from tests.federate.parties import REPEATABLE, federated, tiny


def _fails_once(honest: ClientApp, message: Message, context: Context) -> Message:
    """Device 1 fails in its first round."""
    if (
        message.metadata.message_type == "train.update"
        and int(context.node_config["partition-id"]) == 1
        and message.metadata.group_id == "0"
    ):
        raise RuntimeError
    return honest(message, context)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("status") / "run"
    order = tiny("privacy.noise_source=hardened", preset="fair-mlp", rounds=2)
    federated(order, folder, Settings(deadline_s=30.0, energy="model"), _fails_once)
    return folder


def test_a_finished_federation_is_told_device_by_device(run: Path) -> None:
    status = fleet_status(run)
    assert (status.state, status.why, status.rounds_planned) == ("finished", None, 2)
    assert [(track.scheme, track.seed, track.rounds) for track in status.tracks] == [("proposed", 0, 1)]
    assert [device.connected for device in status.devices] == [False] * 3
    assert all(0.0 <= time.time() - (device.last_seen or 0.0) < 600.0 for device in status.devices)
    assert status.devices[1].faults == {"failed": 1} and status.devices[0].faults == {}
    assert [device.last_delivered for device in status.devices] == [1, None, 1]  # then the budget is spent


def test_steps_and_epsilon_are_those_of_the_privacy_account(run: Path) -> None:
    status, store = fleet_status(run), RunStore(run)
    account = run_account(store.order.scenario, store.ledgers(), store.unfinished(), None)
    store.close()
    assert status.delta == account.delta
    held = account.schemes[0].devices
    assert len(held) == 3
    for device in status.devices:
        assert device.steps == held[device.device].steps > 0
        assert device.epsilon == held[device.device].epsilon(account.delta) > 0.0


@pytest.mark.parametrize("preset", ["small", "fair-mlp"])
def test_nothing_is_shown_that_is_not_proved(tmp_path: Path, preset: str) -> None:
    """Mode 'paper' proves nothing, nor does noise from a seed that everybody knows."""
    federated(tiny(preset=preset, rounds=1), tmp_path / "run", REPEATABLE)
    status = fleet_status(tmp_path / "run")
    assert status.delta is None
    assert {device.epsilon for device in status.devices} == {None}
    assert all((device.steps is None) == (preset == "small") for device in status.devices)
    assert "epsilon at" not in as_table(status, time.time())


def _while_running(run: Path, *events: dict[str, object]) -> FleetStatus:
    for event in events:
        log_line(run, **event)  # type: ignore[arg-type]
    with locked(run):
        return fleet_status(run)


def test_who_is_connected_comes_from_the_log(tmp_path: Path) -> None:
    run = tmp_path / "run"
    federated(tiny(rounds=1), run, REPEATABLE)
    status = _while_running(
        run,
        {"event": "started"},
        {"event": "joined", "device": 0, "node": "70"},
        {"event": "joined", "device": 2, "node": "72"},
        {"event": "left", "device": 0, "node": "70", "last_seen": 1234.5},
    )
    assert status.state == "running"
    assert [(device.connected, device.node) for device in status.devices] == [
        (False, None),
        (False, None),
        (True, "72"),
    ]
    assert status.devices[0].last_seen == 1234.5
    assert "running, 1 of 3 devices connected" in as_table(status, time.time())
    status = _while_running(run, {"event": "started"})  # it was begun again, and nobody has come yet
    assert not any(device.connected for device in status.devices)
    log_line(run, "failed", why="\x1b[2Jtoo few", exit_code=7)
    status = fleet_status(run)
    assert status.state == "failed" and "\x1b" not in as_table(status, time.time())


def test_looking_is_not_taken_for_running(run: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(lambda _: is_held(run), range(200)))
    with locked(run):
        assert is_held(run)
    assert not is_held(run)


def test_the_command_prints_a_table_and_json(run: Path) -> None:
    runner = CliRunner()
    text = runner.invoke(app, ["federate", "status", str(run)])
    assert text.exit_code == 0 and "failed 1" in text.output and "round 1" in text.output
    given = runner.invoke(app, ["federate", "status", str(run), "--format", "json"])
    assert json.loads(given.output) == as_document(fleet_status(run))


def test_a_folder_without_a_federation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"holds no federation yet; start it with ./run.sh"):
        fleet_status(tmp_path)
