"""What a federation whose mode proves something stores, and the statement that follows from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.errors import FederationError, StoreError
from fairwave.federate.flower_records import answer_from_records
from fairwave.federate.settings import Settings
from fairwave.privacy.accounting import epsilon_of
from fairwave.runs.salt import FILE as SALT
from tests.end_to_end.command_line import fairwave
from tests.federate.parties import federated, tiny
from tests.statements import verifier

PROVING = ("data.samples_per_device=200", "privacy.max_epsilon=4")


@pytest.mark.slow
def test_a_federation_that_proves_keeps_its_salt_and_can_be_verified(tmp_path: Path, capsys, monkeypatch) -> None:
    folder = tmp_path / "run"
    federated(tiny(*PROVING, preset="fair-mlp", rounds=1), folder)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, folder / SALT, folder / "run.sqlite")}
    assert modes == {"run": 0o700, SALT: 0o600, "run.sqlite": 0o600}
    federated(tiny(*PROVING, preset="fair-mlp", rounds=2), folder)
    said = fairwave(capsys, monkeypatch, "privacy", str(folder), "--format", "json")
    assert said.code == 0, said.err
    verifier().verify(said.out.encode(), None)
    (folder / SALT).unlink()
    with pytest.raises(StoreError, match=r"run.salt: cannot be read"):
        federated(tiny(*PROVING, preset="fair-mlp", rounds=3), folder)


@pytest.mark.slow
def test_the_statement_of_an_interrupted_federation_counts_what_was_asked(tmp_path: Path, capsys, monkeypatch) -> None:
    """A device fails in round 2 until the federation stops: the others' answers have left them, and are counted."""
    spent: dict[int, int] = {}

    def fails(honest: ClientApp, message: Message, context: Context) -> Message:
        device, trains = int(context.node_config["partition-id"]), message.metadata.message_type.startswith("train")
        if trains and device == 2 and message.metadata.group_id == "1":
            raise RuntimeError
        reply = honest(message, context)
        if trains:
            spent[device] = answer_from_records(reply.content).spent
        return reply

    order = tiny("data.samples_per_device=600", "privacy.noise_source=hardened", "defences.use=[]", preset="fair-mlp")
    settings = Settings(energy="model", deadline_s=30.0, quorum=1.0, patience=2)
    with pytest.raises(FederationError):
        federated(order, tmp_path / "run", settings, fails)
    said = fairwave(capsys, monkeypatch, "privacy", str(tmp_path / "run"), "--format", "json")
    assert said.code == 0, said.err
    verifier().verify(said.out.encode(), None)
    stated = {row["about"]: row["epsilon"] for row in json.loads(said.out)["totals"]}
    for device in (0, 1):
        assert stated[f"device {device}"] >= epsilon_of({(1.3, 16 / 600): spent[device]}, 1e-5)
    text = fairwave(capsys, monkeypatch, "privacy", str(tmp_path / "run")).out
    assert "asked in round 2, not concluded" in " ".join(text.split())
