"""Statements for tests, and the verifier of the examples, which knows nothing of fairwave."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fairwave.extensions import SCHEMES
from fairwave.privacy.ledger import Ledgers, RoundMessages
from fairwave.privacy.modes.mode import mode_of
from fairwave.report.privacy_statement import StatedRun, statement
from fairwave.runs.finished_round import FinishedRound
from fairwave.runs.history import Session
from fairwave.runs.order import Order, Track
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario
from fairwave.signing import canonical, signed

ROOT = Path(__file__).parents[1]
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OVERRIDES = ("cell.num_devices=4", "learning.batch_size=16", "privacy.max_epsilon=unset")


def verifier() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify_statement", ROOT / "examples" / "verify_statement.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def round_messages(draw: np.random.Generator, **changes: Any) -> RoundMessages:
    """A round of four devices, of which some are heard and some are served."""
    sent = np.flatnonzero(draw.random(4) < 0.8)
    served = np.flatnonzero(draw.random(4) < 0.8)
    steps = np.zeros(4, int)
    steps[sent] = draw.integers(1, 60, sent.size)
    given: dict[str, Any] = {
        "invited": np.arange(4),
        "sent": sent,
        "delivered": sent[draw.random(sent.size) < 0.9],
        "served": served,
        "copy_std": draw.uniform(0.04, 0.2, served.size),
        "update_std": 0.05,
        "steps": steps,
        "exchanged_gradients": False,
        "reported_losses": False,
        "model_std": 0.4,
        "model_sensitivity": 0.1,
    }
    return RoundMessages(**{**given, **changes})


def made_up(
    preset: str,
    *overrides: str,
    schemes: tuple[str, ...] = ("max_power",),
    seeds: tuple[int, ...] = (0,),
    rounds: int = 3,
    counts: tuple[int, ...] = (600, 600, 600, 600),
) -> StatedRun:
    """A run whose rounds are drawn at random: everything but training is what it would be."""
    scenario = load_scenario(preset, [*OVERRIDES, *overrides])
    mode, held = mode_of(scenario.privacy), np.array(counts)
    enforced = mode.enforcement(scenario, held, 1_000)
    exchanged = scenario.learning.gradient_exchange
    ledgers: Ledgers = {
        (scheme, seed): [
            (number, event)
            for number in range(rounds)
            for event in mode.events(
                enforced,
                round_messages(
                    np.random.default_rng([seed, number, len(scheme)]),
                    exchanged_gradients=exchanged,
                    reported_losses=SCHEMES[scheme].reports_losses,
                ),
            )
        ]
        for scheme in schemes
        for seed in seeds
    }
    return StatedRun(scenario, ledgers, {}, dict.fromkeys(seeds, held), {"scenario": "", "chains": {}})


def stored(folder: Path, run: StatedRun) -> Path:
    """A run's folder, with rounds that say nothing but what was released."""
    schemes, seeds = (tuple(dict.fromkeys(track[at] for track in run.ledgers)) for at in (0, 1))
    rounds = max(at + 1 for ledger in run.ledgers.values() for at, _ in ledger)
    order = Order(run.scenario, schemes, seeds, rounds)
    folder.mkdir(parents=True)
    store = RunStore.create(folder, order)
    store.extend(order, Session("2026-01-02T03:04:05+00:00", "fairwave run", "a machine", "{}"))
    empty = {"loss": np.zeros(4), "global_loss": np.zeros(()), "test_accuracy": np.zeros(())}
    for track, ledger in run.ledgers.items():
        store.begin(Track(*track), bytes(32), {"samples": run.counts[track[1]][:, None]})
        for number in range(rounds):
            events = [event for at, event in ledger if at == number]
            store.append(Track(*track), [FinishedRound(number, empty, events)], b"state")
    store.close()
    return folder


def sealed(run: StatedRun, key: Ed25519PrivateKey | None = KEY) -> bytes:
    return signed(statement(run), key)


def resealed(raw: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """A statement that somebody without the key has changed and given a new digest."""
    document = json.loads(raw)
    change(document)
    body = {name: value for name, value in document.items() if name not in ("digest", "signature")}
    return signed(body, None)


def forged(raw: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The same, with the signature of the one before."""
    document = json.loads(resealed(raw, change))
    return canonical({**document, "signature": json.loads(raw)["signature"]}) + b"\n"


def with_unfinished(run: StatedRun, unfinished: Ledgers) -> StatedRun:
    return dataclasses.replace(run, unfinished=unfinished)
