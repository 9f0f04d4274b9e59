"""How a federation stands, device by device, from its run folder: the log and the store, whether or not it runs."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from fairwave.errors import StoreError
from fairwave.federate.log_reader import lines_of
from fairwave.plugins import load_plugins
from fairwave.privacy.ledger import with_unfinished
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.spending import Account, Spending
from fairwave.runs.database import is_held
from fairwave.runs.faults import Fault, fault_name
from fairwave.runs.folder import holds_run, is_federation
from fairwave.runs.order import Track
from fairwave.runs.store import RunStore
from fairwave.scenario.privacy_parameters import Privacy


@dataclasses.dataclass
class DeviceStatus:
    """What is known of one device."""

    device: int
    connected: bool = False
    """As far as the log knows; false when the federation does not run."""
    node: str | None = None
    """Flower's number of its node, while it is connected."""
    last_seen: float | None = None
    """When it last answered or was last known to be connected, in seconds since 1970."""
    last_delivered: int | None = None
    """The last round, from 1, in which an update of it was used."""
    faults: dict[str, int] = dataclasses.field(default_factory=dict)
    """How often each fault was counted."""
    steps: int | None = None
    """Private steps that the ledger has charged, a round under way at its worst; None if none are counted."""
    epsilon: float | None = None
    """What these cost at the scenario's delta; None where nothing is proved."""


@dataclasses.dataclass(frozen=True)
class TrackStatus:
    """How far one scheme and seed is."""

    scheme: str
    seed: int
    rounds: int
    round_s: float | None
    """Seconds of its last round."""


@dataclasses.dataclass(frozen=True)
class FleetStatus:
    """How a federation stands."""

    state: str
    """'running', 'finished', 'failed' or 'stopped'."""
    why: str | None
    """Why it failed."""
    rounds_planned: int
    delta: float | None
    """The delta that epsilon is given for; None where nothing is proved."""
    tracks: list[TrackStatus]
    devices: list[DeviceStatus]


def fleet_status(run: Path) -> FleetStatus:
    """The status of the federation in a run folder."""
    if not holds_run(run):
        raise StoreError(f"{run}: holds no federation yet; start it with ./run.sh or 'fairwave federate start'")
    lines, running = list(lines_of(run)), is_held(run)
    store = RunStore(run)
    try:
        if not is_federation(store):
            raise StoreError(f"{run}: holds a simulation, not a federation; 'fairwave report' shows it")
        load_plugins(store.plugin_files())
        scenario, rounds = store.order.scenario, store.order.rounds
        devices = [DeviceStatus(device) for device in range(scenario.cell.num_devices)]
        tracks = [_track(store, track, devices) for track in store.order.tracks()]
        delta = _proving_delta(scenario.privacy)
        if mode_of(scenario.privacy).counts_steps:
            _spent(store, devices, delta)
    finally:
        store.close()
    ended = _from_log(lines, devices, running)
    state = "running" if running else ended.get("event", "stopped")
    return FleetStatus(state, ended.get("why"), rounds, delta, tracks, devices)


def _proving_delta(privacy: Privacy) -> float | None:
    """The delta of what is proved; None where nothing is, as with noise from a seed that everybody knows."""
    mode = mode_of(privacy)
    return privacy.delta if mode.proves and mode.counts_steps and privacy.noise_source != "simulation" else None


def _track(store: RunStore, track: Track, devices: list[DeviceStatus]) -> TrackStatus:
    records = store.records(track)
    for device in devices:
        faults = Counter(device.faults)
        for number, arrays in enumerate(records, start=1):
            if arrays["delivered"][device.device]:
                device.last_delivered = number
            for name in ("gradient_fault", "update_fault"):
                if fault := int(arrays[name][device.device]):
                    faults[fault_name(Fault(fault))] += 1
        device.faults = dict(faults)
    round_s = float(np.asarray(records[-1]["round_s"])) if records else None
    return TrackStatus(track.scheme, track.seed, len(records), round_s)


def _spent(store: RunStore, devices: list[DeviceStatus], delta: float | None) -> None:
    """Steps and epsilon from the ledger, with what a round under way may have released."""
    ledgers = with_unfinished(store.ledgers(), store.unfinished())
    events = (event for ledger in ledgers.values() for _, event in ledger if event.sender == "device")
    accounts = Spending().add(events).accounts()
    none_yet = Account(messages=0, releases={}, lost_delta=0.0, unproven=())
    for device in devices:
        account = accounts.get(device.device, none_yet)
        device.steps = account.steps
        if delta is not None and not account.unproven:
            device.epsilon = account.epsilon(delta) if account.steps else 0.0


def _from_log(lines: Iterable[dict[str, Any]], devices: list[DeviceStatus], running: bool) -> dict[str, Any]:
    """Who is connected, and when devices were seen; the line that ended the federation, if one did."""
    ended: dict[str, Any] = {}
    for line in lines:
        match line:
            case {"event": "started"}:  # nobody is connected to an access point that has just begun
                ended = {}
                for each in devices:
                    each.connected, each.node = False, None
            case {"event": "joined", "device": int(device)} if device < len(devices):
                devices[device].connected, devices[device].node = True, line.get("node")
                devices[device].last_seen = line["time"]
            case {"event": "left", "device": int(device)} if device < len(devices):
                devices[device].connected, devices[device].node = False, None
                devices[device].last_seen = line["last_seen"]
            case {"event": "round", "answered": list(answered)}:
                for device in answered:
                    devices[device].last_seen = line["time"]
            case {"event": "finished" | "failed"}:
                ended = line
    if not running:
        for each in devices:
            each.connected, each.node = False, None
    return ended
