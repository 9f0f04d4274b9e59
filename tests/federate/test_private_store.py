"""What a federation whose mode proves something stores, and the statement that follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairwave.errors import StoreError
from fairwave.runs.salt import FILE as SALT
from tests.end_to_end.command_line import fairwave
from tests.federate.parties import federated, tiny
from tests.statements import verifier

PROVING = ("data.samples_per_device=200", "privacy.max_epsilon=4")


@pytest.mark.slow
def test_a_federation_that_proves_keeps_its_salt_and_can_be_verified(tmp_path: Path, capsys, monkeypatch) -> None:
    folder = tmp_path / "run"
    federated(tiny(*PROVING, preset="fair", rounds=1), folder)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, folder / SALT, folder / "run.sqlite")}
    assert modes == {"run": 0o700, SALT: 0o600, "run.sqlite": 0o600}
    federated(tiny(*PROVING, preset="fair", rounds=2), folder)
    said = fairwave(capsys, monkeypatch, "privacy", str(folder), "--format", "json")
    assert said.code == 0, said.err
    verifier().verify(said.out.encode(), None)
    (folder / SALT).unlink()
    with pytest.raises(StoreError, match=r"run.salt: cannot be read"):
        federated(tiny(*PROVING, preset="fair", rounds=3), folder)
