"""The log of a federation is JSON, line by line, whatever devices report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fairwave.errors import FairwaveError, FederationError, StoreError
from fairwave.federate.log_lines import in_words
from fairwave.federate.log_reader import failure_in
from fairwave.federate.server_run import LOG, ServerRun, log_line
from fairwave.runs.order import Track


@pytest.mark.parametrize("loss", [np.inf, -np.inf, np.nan])
def test_a_loss_that_is_not_finite_is_null(tmp_path: Path, loss: float) -> None:
    run = SimpleNamespace(log=lambda event, **details: log_line(tmp_path, event, **details))
    arrays = {
        "loss": np.array([loss, np.nan if np.isnan(loss) else 1.0]),
        "test_accuracy": np.array(np.nan),
        "delivered": np.ones(2, bool),
        "round_s": np.array(1.5),
    }
    ServerRun.log_round(run, Track("proposed", 0), 0, arrays, {"no_answer": [1]})
    line = json.loads((tmp_path / LOG).read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert line["loss"] is None and line["test_accuracy"] is None and line["faults"] == {"no_answer": [1]}


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
def test_nothing_that_a_device_says_reaches_the_terminal_as_a_command(line: dict[str, object]) -> None:
    said = in_words(line)
    assert said.isprintable()
    assert "evil" in said and "[2J" in said  # it can be read, and does nothing


@pytest.mark.parametrize(("code", "kind"), [(5, StoreError), (7, FederationError), (None, FederationError)])
def test_what_ended_a_federation_keeps_its_exit_code(code: int | None, kind: type[FairwaveError]) -> None:
    line = {"event": "failed", "why": f"a reason{HOSTILE}"} | ({} if code is None else {"exit_code": code})
    error = failure_in(line)
    assert type(error) is kind and str(error).isprintable()
