"""One device's plan, averaged over channels and mapped over a fleet of any size.

The work is cut into tiles of devices and draws that fit the cache. Every tile is one call of one compiled program,
and on a CPU the tiles run on a thread per core. Memory is bounded by the results, not by the number of draws.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from fairwave.double_precision import double_precision
from fairwave.keys import run_key
from fairwave.planner.tile import Averages, Setting, add, average_tile, averages_of, draw_tile, sum_tile
from fairwave.policy.certify import certify
from fairwave.policy.device_plan import Case
from fairwave.policy.fleet import Fleet
from fairwave.policy.rule import Rule
from fairwave.scenario.parameters import Scenario
from fairwave.types import Key

CPU_LANES = 32_768
GPU_LANES = 1_048_576
CASE_NAMES = np.array([case.name.lower() for case in Case])


def average_plans(
    rule: Rule, scenario: Scenario, fleet: Fleet, num_draws: int, progress: Callable[[int], None]
) -> dict[str, np.ndarray]:
    """Every device's plan under a rule, averaged over the draws in which it uploads.

    `progress` is called with the number of plans (devices times draws) done, from worker threads. An interrupt ends the
    threads after the tile in hand.
    """
    num_devices = scenario.cell.num_devices
    on_cpu = jax.default_backend() == "cpu"
    lanes = CPU_LANES if on_cpu else GPU_LANES
    wide = min(lanes, _power_of_two(num_devices))
    deep = min(_power_of_two(num_draws), lanes // wide)
    setting = Setting(rule, scenario.radio, scenario.learning)
    result: dict[str, np.ndarray] = {}
    stop = threading.Event()

    def work(start: int) -> None:
        count = min(wide, num_devices - start)
        # Whole tiles only, so that one program is compiled: the last one repeats its last device.
        members = np.minimum(np.arange(start, start + wide), num_devices - 1)
        with double_precision():
            part = jax.tree.map(lambda leaf: leaf[members] if np.ndim(leaf) else leaf, fleet)
            tell = functools.partial(_tell, progress, stop, count)
            root = run_key(scenario.run.seed)
            averages = _over_draws(setting, part, members, root, num_draws=num_draws, deep=deep, tell=tell)
        certify(np.asarray(averages.pop("worst_violation"))[:count], first=start)
        columns = {name: np.asarray(value) for name, value in averages.items()}
        columns["case"] = CASE_NAMES[columns["case"]]
        for name, value in columns.items():
            if name not in result:
                result[name] = np.empty((num_devices, *value.shape[1:]), value.dtype)
            result[name][start : start + count] = value[:count]

    work(0)  # compiles once and lays out the result, before the threads start
    with ThreadPoolExecutor(os.cpu_count() if on_cpu else 1) as pool:
        try:
            for _ in pool.map(work, range(wide, num_devices, wide)):
                pass
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return result


class _Stopped(Exception):
    """Ends a worker thread whose result nobody waits for."""


def _tell(progress: Callable[[int], None], stop: threading.Event, count: int, num_draws: int) -> None:
    if stop.is_set():
        raise _Stopped
    progress(count * num_draws)


def _power_of_two(count: int) -> int:
    """The next power of two: few sizes, hence few programs to compile."""
    return 1 << (count - 1).bit_length()


def _over_draws(
    setting: Setting,
    fleet: Fleet,
    members: np.ndarray,
    root: Key,
    *,
    num_draws: int,
    deep: int,
    tell: Callable[[int], None],
) -> Averages:
    """Averages of one tile's devices over all draws, `deep` of them at a time; `tell` hears of each such step."""
    if num_draws == 1:
        averages: Averages = average_tile(setting, fleet, draw_tile(setting.radio, root, np.arange(1), members))
        tell(1)
        return averages
    totals = None
    for first in range(0, num_draws, deep):
        rounds = np.arange(first, first + deep)
        channels = draw_tile(setting.radio, root, rounds, members)
        new = sum_tile(setting, fleet, channels, rounds < num_draws)
        totals = new if totals is None else add(totals, new)
        np.asarray(totals.draws)  # waits, so that an interrupt never finds a queue of tiles
        tell(min(deep, num_draws - first))
    averages = averages_of(totals)
    return averages
