"""What becomes of a federation is what its start command says, whatever Flower's own command makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairwave.errors import FederationError, ScenarioError, StoreError
from fairwave.federate import federation_start
from fairwave.federate.agreement import SCENARIO, Agreement
from fairwave.federate.federation_start import start_federation
from fairwave.federate.kit import write_kit
from fairwave.federate.point_folder import PointFolder
from fairwave.federate.server_run import log_line
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny


class Script:
    """A SuperLink that does with a run what a test says."""

    def __init__(self, point: PointFolder) -> None:
        self.point, self.asked = point, list[tuple[str, ...]]()
        self.lines: list[dict[str, Any]] = []
        self.statuses: list[str | Exception] = []

    def __call__(self, *arguments: str) -> dict[str, Any]:
        self.asked.append(arguments)
        match arguments[0]:
            case "run":
                for line in self.lines:
                    log_line(self.point.run, **line)
                return {"run-id": "17"}
            case "list":
                status = self.statuses.pop(0)
                if isinstance(status, Exception):
                    raise status
                return {"runs": [{"status": status}]}
            case _:
                return {}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    write_kit(tmp_path / "kit", Agreement(tiny(), Settings()), ["localhost"], 8443, 30)
    made = Script(PointFolder.of(tmp_path / "kit"))
    monkeypatch.setattr(PointFolder, "flwr", lambda point, *arguments: made(*arguments))
    monkeypatch.setattr(federation_start, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(federation_start, "STATUS_EVERY_S", -1.0)
    return made


def _start(script: Script) -> list[str]:
    said: list[str] = []
    start_federation(script.point, "test", lambda line: said.append(line["event"]))
    return said


def test_a_federation_that_finishes_ends_well(script: Script) -> None:
    script.lines = [{"event": "started"}, {"event": "finished"}]
    assert _start(script) == ["started", "finished"]
    config = script.asked[0][3]
    assert f'out="{script.point.run}"' in config and f'known_keys="{script.point.known_keys}"' in config


def test_an_old_line_is_not_taken_for_the_new_run(script: Script) -> None:
    script.lines = [{"event": "finished"}]
    _start(script)
    script.lines, script.statuses = [{"event": "started"}], ["running", "finished:failed"]
    with pytest.raises(FederationError, match="ended without a result"):
        _start(script)


@pytest.mark.parametrize(("code", "kind"), [(5, StoreError), (7, FederationError)])
def test_what_the_access_point_fails_with_is_raised(script: Script, code: int, kind: type[Exception]) -> None:
    script.lines = [{"event": "failed", "why": "so it is", "exit_code": code}]
    with pytest.raises(kind, match="so it is"):
        _start(script)


def test_a_program_that_dies_without_a_word_is_noticed(script: Script) -> None:
    script.statuses = ["starting", "running", "finished:failed"]
    with pytest.raises(FederationError, match=r"ended without a result \(Flower says 'finished:failed'\)"):
        _start(script)


def test_a_superlink_may_be_silent_for_a_while_and_not_for_good(script: Script) -> None:
    silent = FederationError("no answer")
    most = federation_start.MOST_SILENCES
    script.statuses = [*[silent] * most, "running", *[silent] * most, "finished:stopped"]
    with pytest.raises(FederationError, match="finished:stopped"):
        _start(script)
    script.statuses = [silent] * (most + 1)
    with pytest.raises(FederationError, match=r"does not answer any more \(no answer\); every stored round is safe"):
        _start(script)


def test_an_interrupted_start_stops_the_run(script: Script) -> None:
    script.lines = [{"event": "started"}]

    def interrupt(line: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_federation(script.point, "test", interrupt)
    assert script.asked[-1] == ("stop", "17")


def test_nothing_is_submitted_if_something_is_wrong(script: Script) -> None:
    for path in script.point.known_keys.iterdir():
        path.unlink()
    with pytest.raises(FederationError, match="holds no public key"):
        _start(script)
    (script.point.agreement / SCENARIO).write_text("nonsense", "utf-8")
    with pytest.raises(ScenarioError):
        _start(script)
    assert script.asked == []
