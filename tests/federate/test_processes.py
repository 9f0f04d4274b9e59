"""Programs are ended with all that they began, even what has left their session."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from fairwave.federate.processes import Program, descendants, end_all, free_ports, surroundings

FAMILY = """
import subprocess, sys, time, signal
if len(sys.argv) > 2:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
depth = int(sys.argv[1])
if depth:
    subprocess.Popen([sys.executable, __file__, str(depth - 1), *sys.argv[2:]], start_new_session=True)
print("up", flush=True)
time.sleep(120)
"""


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("stubborn", [(), ("ignores SIGTERM",)])
def test_a_family_is_ended_together(stubborn: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairwave.federate.processes._GRACE_S", 0.5)
    script = tmp_path / "family.py"
    script.write_text(FAMILY)
    program = Program([Path(sys.executable).name, str(script), "2", *stubborn], dict(os.environ), tmp_path / "log")
    end = time.monotonic() + 30.0
    while (tmp_path / "log").read_text().count("up") < 3 and time.monotonic() < end:
        time.sleep(0.05)
    family = descendants(program.pid)
    assert len(family) == 2
    sessions = {os.getsid(pid) for pid in (*family, program.pid)}
    assert len(sessions) == 3  # killing one session would leave the others
    end_all([program])
    assert not any(_alive(pid) for pid in (*family, program.pid))
    assert program.ended() is not None


def test_a_stranger_with_a_recycled_number_is_left_alone(tmp_path: Path) -> None:
    program = Program([Path(sys.executable).name, "-c", "pass"], dict(os.environ), tmp_path / "log")
    program._family = {os.getpid(): "another beginning"}
    program.end()  # this test would not live to see the next line
    assert program.ended() == 0


def test_flower_is_kept_quiet(tmp_path: Path) -> None:
    given = surroundings(tmp_path)
    assert given["FLWR_TELEMETRY_ENABLED"] == "0"
    assert given["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert given["FLWR_HOME"] == str(tmp_path)
    assert len(set(free_ports(20))) == 20
