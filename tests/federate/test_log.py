"""The log of a federation is JSON, line by line, whatever devices report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

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
