"""What a piece of work really took: wall time, and energy where the processor counts it."""

from __future__ import annotations

import time
from pathlib import Path

RAPL = Path("/sys/class/powercap")
"""Where Linux shows the energy counters of Intel and AMD processors. Most systems let only root read them."""

_MICROJOULE = 1e-6


class Meter:
    """Measures what happens inside a `with`."""

    def __init__(self, counters: Path = RAPL) -> None:
        self._counters = sorted(
            folder
            for folder in counters.glob("intel-rapl:*")
            if folder.name.count(":") == 1  # packages, not parts
        )
        self.seconds = 0.0
        self.energy_j: float | None = None
        """None where there is no counter that may be read; it counts all that the machine does meanwhile."""

    def __enter__(self) -> Meter:
        self._before, self._start = self._read(), time.perf_counter()
        return self

    def __exit__(self, *rest: object) -> None:
        self.seconds, after = time.perf_counter() - self._start, self._read()
        if not self._counters or self._before is None or after is None:
            return
        spans = [int((folder / "max_energy_range_uj").read_text()) for folder in self._counters]
        moved = [(new - old) % (span + 1) for old, new, span in zip(self._before, after, spans, strict=True)]
        self.energy_j = sum(moved) * _MICROJOULE

    def _read(self) -> list[int] | None:
        try:
            return [int((folder / "energy_uj").read_text()) for folder in self._counters]
        except OSError:
            return None
