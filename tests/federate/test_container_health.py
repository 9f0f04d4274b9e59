"""A container of a federation says that it is healthy when it does its part, and why not when it does not."""

from __future__ import annotations

import importlib.util
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docker" / "healthcheck.py"
Check = Callable[[str], tuple[int, str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """The exit code and the line of a check in an empty folder, by role."""
    spec = importlib.util.spec_from_file_location("healthcheck", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.chdir(tmp_path)

    def checked(role: str) -> tuple[int, str]:
        monkeypatch.setenv("FAIRWAVE_ROLE", role)
        code = script.main()
        return code, capsys.readouterr().out

    return checked


def test_a_container_without_a_role_is_healthy_and_an_unknown_role_is_not(check: Check) -> None:
    assert check("") == (0, "the container runs\n")
    code, said = check("node")
    assert code == 1 and "'node' is no role; set one of device, superlink, gate, federation" in said


@pytest.mark.parametrize(("role", "distance"), [("gate", 0), ("superlink", 1)])
def test_a_server_has_to_answer_on_its_port(check: Check, role: str, distance: int) -> None:
    assert check(role)[0] == 1  # no folder of a kit
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        Path("kit.toml").write_text(f'host = "ap.example.org"\nport = {port - distance}\n')
        assert check(role) == (0, f"port {port} answers\n")
    code, said = check(role)
    assert code == 1 and said.startswith(f"{role}: ")


def test_a_federation_has_to_write_its_log(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("federation")[0] == 1
    log = Path("run") / "federation.jsonl"
    log.parent.mkdir()
    log.write_text("")
    assert check("federation")[0] == 1
    log.write_text('{"time": 1.0, "event": "started"}\n{"time": 2.0, "event": "round"}\n')
    code, said = check("federation")
    assert code == 0 and "last event: round" in said
    two_hours_ago = time.time() - 7200
    os.utime(log, (two_hours_ago, two_hours_ago))
    code, said = check("federation")
    assert code == 1 and "nothing was written for 7200 s; FAIRWAVE_SILENCE_S allows 3600" in said
    monkeypatch.setenv("FAIRWAVE_SILENCE_S", "10000")
    assert check("federation")[0] == 0


def test_a_device_asks_fairwave(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path.cwd()}{os.pathsep}{os.environ['PATH']}")
    command = Path("fairwave")
    command.write_text('#!/bin/sh\n[ "$1 $2" = "device health" ] && echo "connected; last heartbeat 3 s ago"\n')
    command.chmod(0o755)
    assert check("device") == (0, "connected; last heartbeat 3 s ago\n")
    command.write_text("#!/bin/sh\necho 'node-0: not connected, as of 9 s ago' >&2; exit 7\n")
    assert check("device") == (1, "device: node-0: not connected, as of 9 s ago\n")
