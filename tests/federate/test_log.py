"""The log of a federation is JSON, line by line, whatever devices report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairwave.cli.fleet_command import say_line
from fairwave.errors import FairwaveError, FederationError, StoreError
from fairwave.federate import log_reader
from fairwave.federate.log_lines import in_words
from fairwave.federate.log_reader import LogReader, failure_in, lines_of
from fairwave.federate.server_run import LOG, ServerRun, log_line
from fairwave.runs.order import Track


@pytest.mark.parametrize("loss", [np.inf, -np.inf, np.nan])
def test_a_loss_that_is_not_finite_is_null(tmp_path: Path, loss: float) -> None:
    run = SimpleNamespace(log=lambda event, **details: log_line(tmp_path, event, **details))
    arrays = {
        "loss": np.array([loss, np.nan if np.isnan(loss) else 1.0]),
        "test_accuracy": np.array(np.nan),
        "delivered": np.ones(2, bool),
        "participating": np.ones(2, bool),
        "round_s": np.array(1.5),
    }
    ServerRun.log_round(run, Track("proposed", 0), 0, arrays, {"no_answer": [1]})
    line = json.loads((tmp_path / LOG).read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert line["loss"] is None and line["test_accuracy"] is None and line["faults"] == {"no_answer": [1]}
    assert line["answered"] == [0]


HOSTILE = "\x1b[2J\x1b]0;mine\x07\x9b31m\r\n\u202eevil\x00"


@pytest.mark.parametrize(
    "line",
    [
        {"event": "refused", "why": HOSTILE},
        {"event": "device error", "device": 0, "why": HOSTILE},
        {"event": "left", "device": 0, "why": HOSTILE},
        {"event": "no quorum", "round": 1, "phase": HOSTILE, "faults": {HOSTILE: [1]}},
    ],
)
def test_nothing_that_a_device_says_reaches_the_terminal_as_a_command(
    line: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    said = in_words(line)
    assert said.isprintable()
    say_line(line)
    assert capsys.readouterr().err == f"{said}\n"
    assert "evil" in said and "[2J" in said  # it can be read, and does nothing


@pytest.mark.parametrize(("code", "kind"), [(5, StoreError), (7, FederationError), (None, FederationError)])
def test_what_ended_a_federation_keeps_its_exit_code(code: int | None, kind: type[FairwaveError]) -> None:
    line = {"event": "failed", "why": f"a reason{HOSTILE}"} | ({} if code is None else {"exit_code": code})
    error = failure_in(line)
    assert type(error) is kind and str(error).isprintable()


def test_a_large_log_is_rotated_and_followed_without_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_reader, "LARGEST", 2_000)
    log_line(tmp_path, "before")
    reader, followed = LogReader(tmp_path / LOG), list[object]()
    for number in range(400):
        log_line(tmp_path, "round", number=number)
        if number % 7 == 0:
            followed += [line["number"] for line in reader.news()]
    followed += [line["number"] for line in reader.news()]
    assert followed == list(range(400))
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {LOG, *(f"{LOG}.{number}" for number in range(1, log_reader.KEPT + 1))}
    assert all(path.stat().st_size < 2_100 for path in tmp_path.iterdir())
    kept = [line["number"] for line in lines_of(tmp_path)]
    assert kept == list(range(400))[-len(kept) :] and len(kept) > 150


def test_a_line_that_is_being_written_waits(tmp_path: Path) -> None:
    reader = LogReader(tmp_path / LOG)
    assert reader.news() == []
    (tmp_path / LOG).write_text('{"event": "a"}\n{"even')
    assert reader.news() == [{"event": "a"}] == list(lines_of(tmp_path))
    with (tmp_path / LOG).open("a") as handle:
        handle.write('t": "b"}\n')
    assert reader.news() == [{"event": "b"}]
