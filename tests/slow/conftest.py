"""Long suites compile many programs: let go of them after each module, before the process runs out of memory maps."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def _programs_do_not_pile_up() -> Iterator[None]:
    yield
    jax.clear_caches()
