"""`fairwave ui` as a shell sees it: what it says, what it refuses, how it ends."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.command_line import fairwave
from tests.unit.ui.stored_runs import a_run

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=([\w-]{32})")


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """The command while it serves, with its port and its token."""
    command = [sys.executable, "-m", "fairwave", "ui", str(folder), "--no-open", *options]
    pipe, unbuffered = subprocess.PIPE, {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=unbuffered) as process:
        try:
            assert process.stdout is not None
            said = ADDRESS.search(process.stdout.readline())
            assert said is not None
            yield process, int(said[1]), said[2]
        finally:
            process.kill()


def test_it_serves_until_ctrl_c_which_ends_it_at_once_though_streams_are_open(tmp_path):
    with serving(a_run(tmp_path / "a").parent, "--port", "0") as (process, port, token):
        streams = []
        for query in ("", "run=a&", "run=a&run=a&"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", f"/events?{query}token={token}")
            answer = connection.getresponse()
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.readline().startswith(b'data: {"')
            streams.append((connection, answer))
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=30)
        assert time.monotonic() - before < 3.0
        assert code == 130 and process.stderr is not None
        assert process.stderr.read() == "fairwave: interrupted\n"
        for connection, answer in streams:
            assert answer.read().count(b"Traceback") == 0
            connection.close()


def test_tokens_differ_and_ports_are_those_that_are_free(tmp_path):
    with serving(tmp_path, "--port", "0") as (_, port, first), serving(tmp_path, "--port", "0") as (_, other, second):
        assert first != second and port != other
        command = [sys.executable, "-m", "fairwave", "ui", str(tmp_path), "--no-open", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 4
        assert f"--host 127.0.0.1 --port {port}: cannot be listened on" in done.stderr


def test_an_open_host_needs_a_token(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("FAIRWAVE_UI_TOKEN", raising=False)
    said = fairwave(capsys, monkeypatch, "ui", str(tmp_path), "--host", "0.0.0.0")
    assert said.code == 2 and said.err.count("\n") == 1 and "--token" in said.err and "SSH tunnel" in said.err
    for token in ("short", "x" * 15, "sixteen and spaces", "\u00e9" * 20):
        said = fairwave(capsys, monkeypatch, "ui", str(tmp_path), "--host", "0.0.0.0", "--token", token)
        assert said.code == 2 and said.err.startswith("fairwave: --token") and said.err.count("\n") == 1


def test_a_file_is_no_folder(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    said = fairwave(capsys, monkeypatch, "ui", str(tmp_path / "file"))
    assert said.code == 2 and "is a file, not a folder" in said.err


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_a_missing_extra_is_one_line_with_the_remedy(capsys, monkeypatch, tmp_path, missing):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else found(name))
    said = fairwave(capsys, monkeypatch, "ui", str(tmp_path))
    assert said.code == 2 and said.err.count("\n") == 1 and "pip install 'fairwave[ui]'" in said.err
