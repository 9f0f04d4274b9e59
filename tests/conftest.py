"""Tests compute in double precision, and broadcasting of unequal ranks is an error.

Compiled programs are kept for the length of the session: many tests, and the commands that they start, compile the
same ones.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import jax
import pytest

CACHE = "JAX_COMPILATION_CACHE_DIR"

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
    """Slow tests compile many programs: let go of them after each module, before memory maps run out."""
    yield
    chosen = str(request.config.option.markexpr)
    if "slow" in chosen and "not slow" not in chosen:
        jax.clear_caches()
