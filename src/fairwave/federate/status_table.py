"""A federation's status as a table for people and as a document for programs."""

from __future__ import annotations

import dataclasses
from typing import Any

from fairwave.federate.fleet_status import DeviceStatus, FleetStatus
from fairwave.federate.log_lines import plain

FORMAT = 1
_HEADINGS = ("device", "connected", "last seen", "last delivered", "steps", "epsilon", "faults")


def as_document(status: FleetStatus) -> dict[str, Any]:
    """What `--format json` prints; what is not known is null."""
    return {"format": FORMAT, **dataclasses.asdict(status)}


def as_table(status: FleetStatus, now: float) -> str:
    """What a person reads; `now` is the time that ages are counted from."""
    lines = [_state(status)]
    for track in status.tracks:
        took = "" if track.round_s is None else f", the last in {track.round_s:.1f} s"
        lines.append(
            f"{track.scheme}, seed {track.seed}: {track.rounds} of {status.rounds_planned} rounds stored{took}"
        )
    if status.delta is not None:
        lines.append(
            f"epsilon at delta {status.delta:g}, as charged to the ledger, with an unfinished round at its worst"
        )
    rows = [_HEADINGS, *(_row(device, now) for device in status.devices)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*lines, "", *table])


def _state(status: FleetStatus) -> str:
    connected = sum(device.connected for device in status.devices)
    if status.state == "running":
        return f"running, {connected} of {len(status.devices)} devices connected"
    return f"{status.state}{f': {plain(status.why)}' if status.why else ''}"


def _row(device: DeviceStatus, now: float) -> tuple[str, ...]:
    faults = ", ".join(f"{name} {count}" for name, count in sorted(device.faults.items()))
    return (
        str(device.device),
        "yes" if device.connected else "no",
        "never" if device.last_seen is None else f"{_age(max(0.0, now - device.last_seen))} ago",
        "-" if device.last_delivered is None else f"round {device.last_delivered}",
        "-" if device.steps is None else str(device.steps),
        "-" if device.epsilon is None else f"{device.epsilon:.3f}",
        faults or "-",
    )


def _age(seconds: float) -> str:
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
