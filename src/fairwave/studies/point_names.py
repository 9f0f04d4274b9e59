"""Names of a sweep's points: readable, fit for a folder, and the same whatever else is swept with them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

Shown = float | int | str
LONGEST = 180
"""Characters of a name, below what file systems allow."""
_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


def shown(given: object, resolved: object) -> Shown:
    """A value as it is shown: a number in SI units, however it was written; all else as it was given."""
    if isinstance(resolved, int | float) and not isinstance(resolved, bool):
        return int(resolved) if float(resolved).is_integer() and abs(resolved) < 2**53 else float(resolved)
    return given if isinstance(given, str) else json.dumps(given, default=str)


def point_name(values: Mapping[str, Shown]) -> str:
    """Such as 'cell.num_devices=10,radio.bandwidth_hz=250000'; a digest replaces what no folder's name could hold."""
    ordered = sorted(values.items())  # a file whose lines change places names the same runs
    whole = ",".join(f"{name}={value}" for name, value in ordered)
    readable = ",".join(f"{name}={_UNFIT.sub('-', str(value))}" for name, value in ordered)
    if readable == whole and len(whole) <= LONGEST:
        return whole
    return f"{readable[:LONGEST]}-{hashlib.blake2b(whole.encode(), digest_size=4).hexdigest()}"
