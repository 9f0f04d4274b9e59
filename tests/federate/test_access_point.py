"""The access point's scripts against a real SuperLink: what they register, what they keep out, and how they end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwave.federate.agreement import FEDERATION, SCENARIO, Agreement
from fairwave.federate.kit import write_kit
from fairwave.federate.log_reader import lines_of
from fairwave.federate.processes import Program, end_all, wait_until
from fairwave.federate.settings import Settings
from fairwave.runs.folder import LOG
from tests.federate.gate_attack import free_pair
from tests.federate.parties import tiny

pytestmark = [pytest.mark.slow, pytest.mark.alone]

OURS = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def _run(point: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(point / script), *arguments]
    return subprocess.run(command, env=OURS, capture_output=True, text=True, timeout=200, check=False)


def _fairwave(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fairwave", "federate", *map(str, arguments)]
    return subprocess.run(command, env=OURS, capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    settings = Settings(wait_s=3.0, energy="model")
    write_kit(tmp_path / "kit", Agreement(tiny(rounds=12), settings), ["localhost"], free_pair(), 30)
    return tmp_path / "kit"


@pytest.fixture
def point(kit: Path) -> Iterator[Path]:
    superlink = _superlink(kit)
    try:
        yield kit / "access-point"
    finally:
        end_all([superlink])


def _superlink(kit: Path) -> Program:
    log = kit / "superlink.log"
    log.unlink(missing_ok=True)
    started = Program([str(kit / "access-point" / "start.sh")], OURS, log)
    if not wait_until(lambda: "Application startup complete" in log.read_text("utf-8"), 90.0):
        end_all([started])
        raise AssertionError(log.read_text("utf-8"))
    return started


def _statuses(point: Path) -> list[str]:
    listed = _run(point, "flwr.sh", "supernode", "list", "federation", "--format", "json").stdout
    return [node["status"] for node in json.loads(listed[listed.index("{") :])["nodes"]]


def test_keys_are_registered_once_and_revoked_for_good(kit: Path, point: Path) -> None:
    first = _run(point, "register.sh")
    assert first.returncode == 0 and first.stdout.count("is registered\n") == 3, first.stderr
    (point / "registered.json").rename(kit / "aside.json")
    again = _run(point, "register.sh")  # Flower refuses every key, and says so in words that we know
    assert again.returncode == 0 and again.stdout.count("is known to the SuperLink already") == 3, again.stderr
    (kit / "aside.json").rename(point / "registered.json")
    kept = (point / "known_keys" / "1.pub").read_bytes()
    assert _fairwave("revoke", kit, 1).returncode == 0
    assert sorted(_statuses(point)) == ["registered", "registered", "unregistered"]
    (point / "known_keys" / "1.pub").write_bytes(kept)
    back = _run(point, "register.sh")
    assert back.returncode == 0 and "1.pub was revoked, and stays out" in back.stdout
    (point / "known_keys" / "1.pub").unlink()
    added = _fairwave("add", kit, 1, "--out", kit / "new")
    assert added.returncode == 0, added.stderr
    assert (kit / "new" / "node-1" / "device.toml").exists()
    assert sorted(_statuses(point)) == ["registered", "registered", "registered", "unregistered"]
    assert (point / "superlink.sqlite").stat().st_mode & 0o077 == 0


def test_run_ends_with_a_true_exit_code(kit: Path, point: Path) -> None:
    missing = _run(point, "run.sh")
    assert missing.returncode == 7, missing.stderr
    assert "0 of 3 devices are connected after 3 s" in missing.stderr
    agreement = point / "app" / "fairwave_app"
    scenario = (agreement / SCENARIO).read_text("utf-8")
    (agreement / SCENARIO).write_text(scenario.replace("batch_size = ", "batch_size = 1"), "utf-8")
    other = _run(point, "run.sh")
    assert other.returncode == 5 and "learning.batch_size" in other.stderr, other.stderr
    (agreement / SCENARIO).write_text("nonsense", "utf-8")
    assert _run(point, "run.sh").returncode == 2
    (agreement / SCENARIO).write_text(scenario, "utf-8")
    settings = (agreement / FEDERATION).read_text("utf-8")
    (agreement / FEDERATION).write_text(settings.replace("wait_s = 3.0", "wait_s = 100.0"), "utf-8")
    began = len((point / "run" / LOG).read_text().splitlines())
    command = [str(point / "run.sh")]
    with subprocess.Popen(command, env=OURS, stderr=subprocess.PIPE, text=True) as running:
        assert wait_until(lambda: len((point / "run" / LOG).read_text().splitlines()) > began, 60.0)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 130
        assert running.stderr is not None and "every finished round is safe; resume with" in running.stderr.read()
    listed = _run(point, "flwr.sh", "list", "federation", "--format", "json").stdout
    states = {each["status"] for each in json.loads(listed[listed.index("{") :])["runs"]}
    assert states == {"finished:failed", "finished:stopped"}


needs_gate = pytest.mark.skipif(
    shutil.which("nginx") is None and os.environ.get("FAIRWAVE_NGINX") != "required",
    reason="nginx, which is the gate, is not installed here (set FAIRWAVE_NGINX=required to insist)",
)


@contextlib.contextmanager
def _devices(kit: Path) -> Iterator[None]:
    """The gate and three devices, as their scripts start them."""
    ours = {**OURS, "HOME": str(kit)}  # the account of the devices' records is in the user's home
    scripts = [kit / "access-point" / "gate.sh", *(kit / f"node-{device}" / "start.sh" for device in range(3))]
    programs = [Program([str(script)], ours, kit / f"{script.parent.name}.log") for script in scripts]
    try:
        yield
    finally:
        end_all(programs)


@needs_gate
def test_devices_come_through_the_gate_and_a_revoked_one_is_out_while_it_runs(kit: Path, point: Path) -> None:
    assert _run(point, "register.sh").returncode == 0
    with _devices(kit):
        assert wait_until(lambda: _statuses(point).count("online") == 3, 90.0)
        with subprocess.Popen([str(point / "run.sh")], env=OURS, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            said = []
            for line in running.stderr:
                said.append(line)
                if "round 2:" in line:
                    revoked = _fairwave("revoke", point, 2)
            assert running.wait(60) == 0, said
        assert revoked.returncode == 0, revoked.stderr
    assert "limiting" not in (kit / "access-point.log").read_text("utf-8")  # the gate is wide enough for its devices
    lines = list(lines_of(point / "run"))
    rounds = [line for line in lines if line["event"] == "round"]
    assert len(rounds) == 12
    assert 2 in rounds[0]["answered"] and rounds[-1]["answered"] == [0, 1]
    left = [line["why"] for line in lines if line["event"] == "left" and line["device"] == 2 and "why" in line]
    assert left == ["a key of it was revoked"]
    status = json.loads(_fairwave("status", kit, "--format", "json").stdout)
    assert status["state"] == "finished" and status["devices"][0]["last_delivered"] == 12
    assert status["devices"][2]["last_delivered"] < 12


@needs_gate
@pytest.mark.faults
def test_a_superlink_that_is_killed_is_started_again_and_nothing_else_is(kit: Path) -> None:
    """Devices come back by themselves, nobody is registered again, and the same command goes on."""
    point = kit / "access-point"
    first = _superlink(kit)
    try:
        assert _run(point, "register.sh").returncode == 0
        with _devices(kit):
            with subprocess.Popen([str(point / "run.sh")], env=OURS, stderr=subprocess.PIPE, text=True) as running:
                assert running.stderr is not None
                for line in running.stderr:
                    if "round 2:" in line:
                        os.killpg(first.pid, signal.SIGKILL)
                        break
                said = running.stderr.read()
                assert running.wait(200) == 7, said
            second = _superlink(kit)
            try:
                assert wait_until(lambda: _statuses(point).count("online") == 3, 180.0)
                done = _run(point, "run.sh")
                assert done.returncode == 0, done.stderr
            finally:
                end_all([second])
    finally:
        end_all([first])
    rounds = [line for line in lines_of(point / "run") if line["event"] == "round"]
    assert [line["round"] for line in rounds] == list(range(1, 13))
    assert rounds[-1]["answered"] == [0, 1, 2]


def test_without_a_superlink_run_says_so(kit: Path) -> None:
    done = _run(kit / "access-point", "run.sh")
    assert done.returncode == 7 and "is the SuperLink running (./start.sh)?" in done.stderr
