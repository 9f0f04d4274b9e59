"""Statements: an independent program recomputes every epsilon, and refuses whatever was changed."""

from __future__ import annotations

import functools
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwave.errors import ArgumentError
from fairwave.privacy.ledger import event
from fairwave.report.privacy_statement import statement
from fairwave.signing import canonical, make_signing_key, signed, signing_key
from tests.statements import KEY, ROOT, forged, made_up, resealed, sealed, verifier, with_unfinished

PROGRAM = ROOT / "examples" / "verify_statement.py"
VERIFY = verifier().verify
PUBLIC = KEY.public_key().public_bytes_raw()
DEVICE = ("privacy.mode=device", "defences.use=[]", "privacy.noise_multiplier=4")
EXCHANGE = ("learning.gradient_exchange=true", "privacy.exchange_noise_multiplier=6")
RUNS = {
    "paper": made_up("paper", schemes=("proposed", "max_power")),
    "paper, nested": made_up("paper-clean", "privacy.copies=nested", schemes=("proposed",), seeds=(0, 1)),
    "paper, one copy for all": made_up("paper", "privacy.broadcast=true", schemes=("max_power", "q_fedavg")),
    "provable": made_up("fair-mlp"),
    "provable, more noise, schemes": made_up(
        "fair-mlp", "privacy.noise_multiplier=2.5", schemes=("proposed", "max_power")
    ),
    "provable, less noise, seeds": made_up("fair-mlp", "privacy.noise_multiplier=0.9", seeds=(0, 1)),
    "provable, exchange": made_up("fair-mlp", *EXCHANGE),
    "provable, exchange, seeds": made_up("fair-mlp", *EXCHANGE, seeds=(3, 4)),
    "provable, unequal": made_up(
        "fair-mlp", counts=(40, 600, 900, 12), seeds=(0, 1), schemes=("proposed", "max_power")
    ),
    "provable, budget": made_up("fair-mlp", "privacy.max_epsilon=3", counts=(600, 600, 900, 900)),
    "provable, hardened": made_up("fair-mlp", "privacy.noise_source=hardened"),
    "device": made_up("fair-mlp", *DEVICE),
    "device, seeds": made_up("fair-mlp", *DEVICE, seeds=(0, 1, 2), schemes=("max_power", "amplifier_cap"), rounds=2),
    "device, budget": made_up("fair-mlp", *DEVICE, "privacy.max_epsilon=9"),
}


@functools.cache
def stated() -> bytes:
    return sealed(RUNS["provable, budget"])


def refusal(raw: bytes, public_key: bytes | None = None) -> str:
    """Why the verifier refuses a file; empty if it does not."""
    try:
        VERIFY(raw, public_key)
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


@pytest.mark.parametrize("name", RUNS)
def test_an_independent_program_agrees_on_every_epsilon(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    raw = sealed(RUNS[name])
    VERIFY(raw, PUBLIC)
    said = capsys.readouterr().out
    totals = json.loads(raw)["totals"]
    assert said.count(" recomputed ") == len(totals) and "every epsilon agrees" in said
    assert len(re.findall(r'"epsilon":', raw.decode())) == len(totals)  # there is none elsewhere


def test_totals_of_one_mode_by_hand() -> None:
    """Mode 'device' with multiplier 4: device k was heard in some rounds, each of which is one Gaussian release."""
    run = RUNS["device"]
    rows = {row["about"]: row["epsilon"] for row in statement(run)["totals"]}
    events = [event for _, event in run.ledgers["max_power", 0] if event.content == "model"]
    heard = [sum(device in event.subjects for event in events) for device in range(4)]
    expected = dp_accounting.get_epsilon_gaussian(4.0 / math.sqrt(max(heard)), 1e-5)
    assert rows["access point"] == "infinite" and rows["the public"] == pytest.approx(expected, rel=1e-9)
    assert rows["everything together"] == pytest.approx(expected, rel=1e-9)


def test_unfinished_tries_count_in_every_total() -> None:
    """Devices 0 and 1 were asked in round 4 and never heard of again: their steps are added, and named as such."""
    run = RUNS["provable"]
    asked = event("update", "device", np.array([0, 1]), 1.3, 1.0, steps=np.array([500, 7]), sampling=16 / 600)
    more = with_unfinished(run, {("max_power", 0): [(3, asked)]})
    raw = sealed(more)
    VERIFY(raw, PUBLIC)
    before, after = ({row["about"]: row["epsilon"] for row in statement(each)["totals"]} for each in (run, more))
    for about in ("device 0", "device 1", "access point", "the public", "everything together"):
        assert after[about] > before[about], about
    assert after["device 2"] == before["device 2"]
    track = json.loads(raw)["tracks"][0]
    assert track["rounds"] == 3 and [each["round"] for each in track["unfinished"]] == [3]
    assert "stated, not" in refusal(resealed(raw, lambda said: said["tracks"][0]["unfinished"].clear()))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 7))
def test_no_bit_of_a_signed_statement_can_be_changed(position: int, bit: int) -> None:
    changed = bytearray(stated())
    changed[position % len(changed)] ^= 1 << bit
    assert refusal(bytes(changed))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 999))
def test_no_number_of_a_signed_statement_can_be_changed(which: int, other: int) -> None:
    numbers = [match.span() for match in NUMBER.finditer(stated())]
    start, end = numbers[which % len(numbers)]
    changed = stated()[:start] + str(other).encode() + stated()[end:]
    assert refusal(changed) or changed == stated()


NUMBER = re.compile(rb"(?<![\w.-])-?\d+(\.\d+)?([eE][-+]?\d+)?(?![\w.])")


@pytest.mark.parametrize("name", ["paper", "provable", "provable, exchange", "device"])
def test_a_missing_event_or_another_total_is_refused_even_without_a_signature(name: str) -> None:
    raw = sealed(RUNS[name])
    said = json.loads(raw)
    for index, one in enumerate(said["tracks"][0]["events"]):
        if one["devices"]:
            lacking = resealed(raw, lambda said, at=index: said["tracks"][0]["events"].pop(at))
            assert re.search("is missing|stated, not", refusal(lacking)), one
    for index, row in enumerate(said["totals"]):
        other = 1.0 if row["epsilon"] == "infinite" else row["epsilon"] * (1 + 3e-6)
        wrong = resealed(raw, lambda said, at=index, to=other: said["totals"][at].update(epsilon=to))
        assert "stated, not" in refusal(wrong), row
    assert "nan stated" in refusal(resealed(raw, lambda said: said["totals"].pop()))


def test_whoever_lacks_the_key_cannot_sign(tmp_path: Path) -> None:
    def later(said: dict[str, object]) -> None:
        said["date"] = "2030-01-01T00:00:00+00:00"

    assert refusal(forged(stated(), later)) == "InvalidSignature"
    assert refusal(resealed(stated(), later), PUBLIC) == "the statement is not signed"
    make_signing_key(tmp_path / "other.key", tmp_path / "other.pub")
    assert "another key" in refusal(sealed(RUNS["device"], signing_key(tmp_path / "other.key")), PUBLIC)
    assert (tmp_path / "other.key").stat().st_mode & 0o077 == 0


def test_as_a_shell_sees_it(tmp_path: Path) -> None:
    make_signing_key(tmp_path / "a.key", tmp_path / "a.pub")
    make_signing_key(tmp_path / "b.key", tmp_path / "b.pub")
    raw = sealed(RUNS["device"], signing_key(tmp_path / "a.key"))
    (tmp_path / "s.json").write_bytes(raw)
    (tmp_path / "changed.json").write_bytes(raw.replace(b'"rounds":3', b'"rounds":2'))

    def call(name: str, public: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(PROGRAM), name, "--public-key", public]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)

    good, wrong, changed = call("s.json", "a.pub"), call("s.json", "b.pub"), call("changed.json", "a.pub")
    assert good.returncode == 0 and "every epsilon agrees" in good.stdout, good.stderr
    assert wrong.returncode == 1 and wrong.stderr.startswith("refused: the statement is signed with another key")
    assert changed.returncode == 1 and changed.stderr.startswith("refused: the file was changed: its digest differs")
    assert wrong.stderr.count("\n") == changed.stderr.count("\n") == 1


def _update(document: dict[str, Any]) -> dict[str, Any]:
    """The first update in a statement that is signed by whoever has made it up."""
    return next(event for event in document["tracks"][0]["events"] if event["content"] == "update")


def _unfinished(**changes: Any) -> Callable[[dict[str, Any]], object]:
    """An event of a round that was not concluded, with columns that no device could have caused."""

    def change(document: dict[str, Any]) -> None:
        event = _update(document)
        columns = {name: [value] * len(event["devices"]) for name, value in changes.items()}
        document["tracks"][0]["unfinished"].append({**event, "round": document["tracks"][0]["rounds"], **columns})

    return change


DISHONEST: dict[str, Callable[[dict[str, Any]], object]] = {
    "a device by two names": lambda d: _update(d).update(devices=[str(each) for each in _update(d)["devices"]]),
    "negative steps": _unfinished(steps=-190),
    "negative lost delta": _unfinished(lost_delta=-0.5),
    "steps that are no numbers": _unfinished(steps=1.5),
    "noise that is infinite": _unfinished(noise_std=1e999),
    "no sampling": _unfinished(sampling=0.0),
    "a sender in no total": lambda d: d["tracks"][0]["unfinished"].append({**_update(d), "sender": "Device"}),
    "a device's message that is said to cost nothing": lambda d: _update(d).update(basis="messages"),
    "a track twice": lambda d: d["tracks"].append(d["tracks"][0]),
    "listeners that hide rows": lambda d: d["tracks"][0].update(listeners=["access point", "device 0"]),
    "an access point that is trusted with nothing": lambda d: d["adversary"].update(access_point="trusted"),
    "a delta that is none": lambda d: d.update(delta=1.5),
    "rounds out of order": lambda d: d["tracks"][0]["events"].reverse(),
}


@pytest.mark.parametrize("name", DISHONEST)
def test_a_statement_that_was_made_up_is_refused_even_if_its_totals_follow(name: str) -> None:
    """Its author has the key, and computes every total by the verifier's own rules."""
    document = json.loads(stated())
    DISHONEST[name](document)
    body = {key: value for key, value in document.items() if key not in ("digest", "signature", "totals")}
    try:
        totals = verifier().derived({**body, "signature": None})
        rows = [dict(zip(("scheme", "seed", "about"), key, strict=True), epsilon=e) for key, e in totals.items()]
        raw = signed({**body, "totals": [{**row, "lost_delta": 0.0} for row in rows]}, KEY)
    except Exception:  # such totals cannot even be computed, or not be written
        return
    assert refusal(raw, PUBLIC)


def test_the_verifier_is_short_and_knows_nothing_of_fairwave() -> None:
    source = PROGRAM.read_text("utf-8")
    lines = [line for line in source.splitlines() if line.strip()]
    assert len(lines) <= 150 and not re.search(r"^\s*(import|from) fairwave", source, re.MULTILINE)


def test_canonical_json() -> None:
    assert canonical({"b": [1.0, None], "a": "é"}) == '{"a":"é","b":[1.0,null]}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": math.inf})


def test_keys_that_cannot_sign_are_refused(tmp_path: Path) -> None:
    (tmp_path / "none.key").write_text("not a key")
    with pytest.raises(ArgumentError, match="holds no plain private key"):
        signing_key(tmp_path / "none.key")
    with pytest.raises(ArgumentError, match="cannot be read"):
        signing_key(tmp_path / "missing.key")
