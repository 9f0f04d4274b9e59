"""Tests compute in double precision, and broadcasting of unequal ranks is an error.

Compiled programs are kept for the length of the session: many tests, and the commands that they start, compile the
same ones.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

CACHE = "JAX_COMPILATION_CACHE_DIR"
MANY_MAPS = 25_000
"""Linux allows a process 65,530 by default; a module of tests makes a few thousand."""

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_configure(config: pytest.Config) -> None:
    """Give all workers and subprocesses one folder for compiled programs, unless there is one already."""
    if CACHE not in os.environ:
        config._programs = tempfile.TemporaryDirectory(prefix="fairwave-programs-")
        os.environ[CACHE] = config._programs.name
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"
    jax.config.update("jax_compilation_cache_dir", os.environ[CACHE])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    programs = getattr(config, "_programs", None)
    if programs is not None:
        programs.cleanup()


@pytest.fixture(autouse=True, scope="module")
def _programs_do_not_pile_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tests compile many programs: let go of them after a module, before memory maps run out and XLA aborts.

    Slow tests compile so many that it is done after each module, others only when the process has many maps.
    """
    yield
    chosen = str(request.config.option.markexpr)
    if ("slow" in chosen and "not slow" not in chosen) or _memory_maps() > MANY_MAPS:
        jax.clear_caches()


def _memory_maps() -> int:
    """Memory maps of this process; 0 where the system does not tell."""
    try:
        return Path("/proc/self/maps").read_bytes().count(b"\n")
    except OSError:
        return 0
