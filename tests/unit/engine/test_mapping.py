"""Threads, one vectorised program, chunks and several JAX devices compute the same rounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.engine import device_map as mapping
from fairwave.engine import gpu_memory as memory
from fairwave.engine.device_map import BEST_HERE, DeviceMap, Execution
from tests.builders import clusters_cell

TOLERANCE = 2e-5
"""Largest difference, relative to the largest value, after three rounds in single precision."""
FORMS = [
    Execution("threads", threads=1),
    Execution("threads", threads=3),
    Execution("vectorised"),
    Execution("vectorised", chunk=4),
]


def played(name: str, execution: Execution) -> list[np.ndarray]:
    """Everything that three rounds leave behind; devices differ in how long they train."""
    cell = clusters_cell(name, "run.evaluate_every=3", devices=7, rate=0.01, execution=execution)
    state = cell.start()
    for number in range(3):
        state, record = cell.round(state, number)
    return [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves((state, record))]


def agree(ours: list[np.ndarray], theirs: list[np.ndarray]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        scale = np.nanmax(np.abs(a)) if a.size else 1.0
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE * max(scale, 1e-3))


@pytest.mark.parametrize(
    "name", ["proposed", "fair_noise_only", *(pytest.param(n, marks=pytest.mark.slow) for n in ("ditto", "mr_mtl"))]
)
def test_all_forms_agree(name):
    first, *others = [played(name, form) for form in FORMS]
    for other in others:
        agree(first, other)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 2, 7, 130])
def test_results_are_in_the_order_of_the_devices(form, count):
    squares = DeviceMap(lambda shared, own: {"sum": shared + own["x"] ** 2})
    own = {"x": jnp.arange(float(count))}
    np.testing.assert_array_equal(squares(jnp.asarray(1.0), own, form)["sum"], 1 + np.arange(count) ** 2)


@pytest.fixture
def asked(monkeypatch):
    """How many devices at a time every program was compiled for, on a GPU that has little memory left."""
    chunks, compiled = [], memory._compiled

    def told(program, chunk, *rest):
        chunks.append(chunk)
        return compiled(program, chunk, *rest)

    monkeypatch.setattr(memory, "_compiled", told)
    monkeypatch.setattr(memory, "free_bytes", lambda: 200_000)
    return chunks


def test_a_program_too_large_for_memory_is_chunked(asked):
    large = DeviceMap(lambda shared, own: jnp.sum(jnp.sin(jnp.outer(jnp.sort(own + shared), own))))
    own = jnp.ones((64, 100))
    result = large(jnp.arange(100.0), own, Execution("vectorised"))
    assert asked[0] is None and len(asked) > 1 and asked[-1] < 64
    np.testing.assert_allclose(result, large(jnp.arange(100.0), own, Execution("threads")), rtol=1e-5)


def test_the_search_starts_below_what_was_too_large(asked, monkeypatch):
    monkeypatch.setattr(mapping, "ENOUGH_COMPANY", 8)
    waiting = DeviceMap(lambda shared, own: jnp.sum(jnp.sin(jnp.outer(own, own))), length=lambda own: own[:, 0])
    waiting(jnp.zeros(()), jnp.ones((64, 100)), Execution("vectorised"))
    assert asked[0] is None and len(asked) > 1 and max(asked[1:]) < 8


SHARDED = """
import json, jax, numpy as np
from tests.unit.engine.test_mapping import played
from fairwave.engine.device_map import BEST_HERE
assert jax.device_count() == 4 and BEST_HERE.form_here() == "sharded"
print(json.dumps([leaf.tolist() for leaf in played("proposed", BEST_HERE)]))
"""


@pytest.mark.slow
def test_four_jax_devices_agree_with_threads():
    """Seven devices on four JAX devices: one part has one device less than the others."""
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    command = [sys.executable, "-c", SHARDED]
    done = subprocess.run(command, env=flags, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    theirs = [np.asarray(leaf, np.float64) for leaf in json.loads(done.stdout.splitlines()[-1])]
    agree(played("proposed", BEST_HERE), theirs)
