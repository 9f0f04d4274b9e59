"""Runs the command line in this process, as a shell would see it."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from fairwave.cli.main import main


@dataclasses.dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def fairwave(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Outcome:
    monkeypatch.setattr(sys, "argv", ["fairwave", *arguments])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main()
        sys.exit(0)
    code = stop.value.code
    said = capsys.readouterr()
    return Outcome(code if isinstance(code, int) else int(code is not None), said.out, said.err)
