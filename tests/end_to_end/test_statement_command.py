"""`fairwave privacy --format json` and what it shares with text: signatures, unfinished tries, all seeds."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from fairwave.privacy.ledger import event
from fairwave.runs.store import RunStore
from fairwave.signing import make_signing_key
from tests.builders import SOFTMAX_MNIST, as_options
from tests.end_to_end.command_line import Outcome, fairwave
from tests.statements import made_up, stored, verifier

VERIFY = verifier().verify


@pytest.fixture
def cli(capsys, monkeypatch):
    def call(*arguments: object) -> Outcome:
        return fairwave(capsys, monkeypatch, *map(str, arguments))

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return stored(tmp_path / "runs" / "fair", made_up("fair-mlp", schemes=("max_power", "proposed"), seeds=(0, 1)))


def public_key(path: Path) -> bytes:
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    return load_pem_public_key(path.read_bytes()).public_bytes_raw()


def test_without_a_key_a_statement_says_that_it_is_unsigned(cli, folder: Path):
    said = cli("privacy", folder, "--format", "json")
    assert said.code == 0 and said.err.count("\n") == 1 and "not signed" in said.err
    document = json.loads(said.out)
    assert document["signature"] is None and len(document["tracks"]) == 4
    VERIFY(said.out.encode(), None)
    assert document["digests"]["chains"].keys() == {"max_power 0", "max_power 1", "proposed 0", "proposed 1"}
    for track in document["tracks"]:
        events = json.dumps({"events": track["events"]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert track["ledger_sha256"] == hashlib.sha256(events.encode()).hexdigest()
    assert document["mode"] == "provable" and document["adversary"]["access_point"] == "malicious"
    assert document["adjacency"]["name"] == "ADD_OR_REMOVE_ONE" and document["filter"] is None
    assert "loss" in document["not_private"] and "deviation" not in document["not_private"]


@pytest.mark.parametrize("place", ["in the folder", "above it", "given"])
def test_a_key_is_found_where_it_should_be(cli, folder: Path, tmp_path: Path, place: str):
    where = {"in the folder": folder, "above it": folder.parent, "given": tmp_path}[place]
    make_signing_key(where / "statement.key", where / "statement.pub")
    more = ("--key", where / "statement.key") if place == "given" else ()
    said = cli("privacy", folder, "--format", "json", "--out", tmp_path / "s.json", *more)
    assert said.code == 0 and said.out == "" and "not signed" not in said.err
    VERIFY((tmp_path / "s.json").read_bytes(), public_key(where / "statement.pub"))


def test_what_cannot_be_done_is_said_in_one_line(cli, folder: Path, tmp_path: Path):
    (tmp_path / "bad.key").write_text("no key")
    for words, why in (
        (("--format", "json", "--key", tmp_path / "bad.key"), "holds no plain private key"),
        (("--out", tmp_path / "s.json"), "go with a statement"),
        (("--format", "json", "--out", tmp_path / "bad.key" / "s.json"), "bad.key: cannot be made (File exists)"),
    ):
        said = cli("privacy", folder, *words)
        assert said.code in (2, 4) and why in said.err and said.err.count("\n") == 1, words


def test_the_folder_of_a_statement_is_made(cli, folder: Path, tmp_path: Path):
    out = tmp_path / "not" / "there" / "s.json"
    assert cli("privacy", folder, "--format", "json", "--out", out).code == 0 and out.is_file()


def test_everything_in_the_folder_has_a_row_and_costs_more_than_any_part(cli, folder: Path):
    said = cli("privacy", folder)
    assert said.code == 0
    (row,) = [line for line in said.out.splitlines() if line.startswith("everything in this folder")]
    parts = [float(number) for number in re.findall(r"access point: epsilon ([\d.]+)", said.out)]
    assert float(re.search(r"epsilon ([\d.]+)", row)[1]) > max(parts) and "an upper bound" in said.out
    for words in ("privacy filter", "the odometer", "whoever supplies the code is trusted"):
        assert words in " ".join(said.out.split())


def test_unfinished_tries_count_in_text_and_statement(cli, folder: Path, monkeypatch):
    """Device 3 was asked in round 4 of one scheme, with more steps than it ever made."""
    asked = event("update", "device", np.array([3]), 1.3, 1.0, steps=4_000, sampling=16 / 600)
    before = cli("privacy", folder).out
    monkeypatch.setattr(RunStore, "unfinished", lambda self: {("proposed", 1): [(3, asked)]})
    said, stated = cli("privacy", folder), cli("privacy", folder, "--format", "json")
    assert "asked in round 4, not concluded: counted at its worst" in said.out and "not concluded" not in before
    worst = {row["about"]: row["epsilon"] for row in json.loads(stated.out)["totals"] if row["seed"] == 1}
    assert f"access point: epsilon {worst['access point']:.3f} about device 3" in said.out
    VERIFY(stated.out.encode(), None)


def test_a_try_that_came_before_the_first_round_counts_too(cli, tmp_path: Path, monkeypatch):
    run = made_up("fair-mlp")
    folder = stored(tmp_path / "run", run)
    monkeypatch.setattr(RunStore, "ledgers", lambda self: {})
    assert cli("privacy", folder).code == 5
    first = [(0, each) for at, each in run.ledgers["max_power", 0] if at == 0 and each.sender == "device"]
    monkeypatch.setattr(RunStore, "unfinished", lambda self: {("max_power", 0): first})
    said = cli("privacy", folder)
    assert said.code == 0 and "asked in round 1, not concluded" in said.out


TINY = as_options(each for each in SOFTMAX_MNIST if not each.startswith("data."))
REAL = {
    "paper": ("paper", "proposed,max_power", "0", ()),
    "nested": ("paper-clean", "proposed", "0,1", ("privacy.copies=nested",)),
    "broadcast": ("small", "max_power", "0", ("privacy.broadcast=true",)),
    "provable": ("fair-mlp", "proposed,max_power", "0", ()),
    "more noise": ("fair-mlp", "proposed", "0", ("privacy.noise_multiplier=2.5",)),
    "less noise": ("fair-mlp", "max_power", "0,1", ("privacy.noise_multiplier=0.8", "privacy.max_epsilon=unset")),
    "exchange": (
        "fair-mlp",
        "proposed",
        "0",
        ("privacy.max_epsilon=unset", "learning.gradient_exchange=true", "privacy.exchange_noise_multiplier=6"),
    ),
    "unequal": ("fair-mlp", "proposed", "0", ('data.partition={law="dirichlet", alpha=0.3}', "privacy.max_epsilon=30")),
    "tight": ("fair-mlp", "proposed", "0", ("privacy.max_epsilon=1.5",)),
    "hardened": ("fair-mlp", "max_power", "0", ("privacy.noise_source=hardened",)),
    "device": (
        "fair-mlp",
        "max_power,amplifier_cap",
        "0,1",
        ("privacy.mode=device", "defences.use=[]", "privacy.noise_multiplier=4", "cell.participants=2"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_the_verifier_agrees_on_runs_that_were_trained(cli, tmp_path: Path, name: str):
    preset, schemes, seeds, settings = REAL[name]
    samples = ("data.samples_per_device=unset",) if name == "unequal" else ("data.samples_per_device=200",)
    words = ("--schemes", schemes, "--seeds", seeds, "--rounds", 2, "--out", tmp_path / "run")
    done = cli("run", preset, *TINY, *as_options((*samples, *settings)), *words)
    assert done.code == 0, done.err
    said = cli("privacy", tmp_path / "run", "--format", "json", "--out", tmp_path / "s.json")
    assert said.code == 0, said.err
    VERIFY((tmp_path / "s.json").read_bytes(), None)
