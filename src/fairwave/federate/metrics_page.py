"""A federation's status in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from fairwave.federate.fleet_status import FleetStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample: TypeAlias = tuple[dict[str, str], float]
"""Labels and a value."""
Metric: TypeAlias = tuple[str, str, str, list[Sample]]
"""Name, type, meaning and samples."""


def metrics_page(status: FleetStatus) -> str:
    """The page; what is not known, and an epsilon that is not proved, is left out."""
    return "".join(_metric(*metric) for metric in (*_of_the_run(status), *_of_devices(status)))


def _of_the_run(status: FleetStatus) -> Iterator[Metric]:
    yield "fairwave_running", "gauge", "1 while the federation runs.", [({}, float(status.state == "running"))]
    yield "fairwave_failed", "gauge", "1 if it ended with an error.", [({}, float(status.state == "failed"))]
    named = [({"scheme": track.scheme, "seed": str(track.seed)}, track) for track in status.tracks]
    yield "fairwave_rounds", "gauge", "Rounds stored.", [(label, float(track.rounds)) for label, track in named]
    yield "fairwave_rounds_planned", "gauge", "Rounds agreed on.", [({}, float(status.rounds_planned))]
    seconds = [(label, track.round_s) for label, track in named if track.round_s is not None]
    yield "fairwave_last_round_seconds", "gauge", "Duration of the last round.", seconds
    connected = float(sum(device.connected for device in status.devices))
    yield "fairwave_devices_connected", "gauge", "Devices connected.", [({}, connected)]


def _of_devices(status: FleetStatus) -> Iterator[Metric]:
    each = [({"device": str(device.device)}, device) for device in status.devices]
    connected = [(label, float(device.connected)) for label, device in each]
    yield "fairwave_device_connected", "gauge", "1 if the device is connected.", connected
    seen = [(label, device.last_seen) for label, device in each if device.last_seen is not None]
    meaning = "When the device last answered or was last known to be connected."
    yield "fairwave_device_last_seen_timestamp_seconds", "gauge", meaning, seen
    rounds = [(label, float(device.last_delivered)) for label, device in each if device.last_delivered is not None]
    meaning = "The last round in which an update of the device was used."
    yield "fairwave_device_last_delivered_round", "gauge", meaning, rounds
    faults = [
        ({**label, "fault": name}, float(count)) for label, device in each for name, count in device.faults.items()
    ]
    yield "fairwave_faults_total", "counter", "Answers of the device that could not be used, by name.", faults
    steps = [(label, float(device.steps)) for label, device in each if device.steps is not None]
    yield (
        "fairwave_steps_charged",
        "gauge",
        "Private steps on the ledger, with an unfinished round at its worst.",
        steps,
    )
    delta = {"delta": f"{status.delta:g}"} if status.delta is not None else {}
    epsilon = [({**label, **delta}, device.epsilon) for label, device in each if device.epsilon is not None]
    meaning = "Proved privacy loss of the device's records towards the access point."
    yield "fairwave_epsilon_spent", "gauge", meaning, epsilon


def _metric(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> str:
    lines = [f"{name}{_labels(labels)} {value!r}\n" for labels, value in samples]
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n{''.join(lines)}" if lines else ""


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    escaped = {
        name: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, text in labels.items()
    }
    return "{" + ",".join(f'{name}="{text}"' for name, text in escaped.items()) + "}"
