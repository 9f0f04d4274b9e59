"""Programs that are compiled before they are called."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.engine import programs
from fairwave.engine.programs import Program, compile_ahead, program, rehearsing, shapes
from fairwave.runs.experiment import Experiment
from fairwave.runs.order import Order
from fairwave.scenario.loading import load_scenario

Compiled = Callable[[], list[str]]
"""Names of the programs that XLA has compiled since the last call."""
LARGE = {
    f"jit({name})" for name in ("conclude_round", "exchanged_gradient", "serially", "_drawn", "_planned", "_fitted")
}


@pytest.fixture
def compiled() -> Iterator[Compiled]:
    seen: list[str] = []

    class Names(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            words = record.getMessage().split()
            if words[:3] == ["Finished", "XLA", "compilation"]:
                seen.append(words[4])

    def since() -> list[str]:
        names, seen[:] = seen[:], []
        return names

    handler, logger = Names(), logging.getLogger("jax")
    logger.addHandler(handler)
    jax.config.update("jax_log_compiles", True)  # for all threads, as the context manager would not do
    yield since
    jax.config.update("jax_log_compiles", False)
    logger.removeHandler(handler)


def test_what_a_function_calls_is_compiled_before_and_not_again(compiled: Compiled) -> None:
    @program(static_argnums=1)
    def scaled(values: jax.Array, factor: int) -> jax.Array:
        return values * factor

    @program()
    def bent(values: jax.Array) -> jax.Array:
        return jnp.sin(values)

    values = jnp.arange(5.0)
    compiled()
    compile_ahead(lambda: bent(scaled(values, 3)))
    assert sorted(compiled()) == ["jit(bent)", "jit(scaled)"]
    np.testing.assert_allclose(bent(scaled(values, 3)), np.sin(3 * np.arange(5.0)), rtol=1e-6)
    assert compiled() == []


def test_a_step_that_looks_at_values_ends_the_rehearsal_quietly(compiled: Compiled) -> None:
    @program()
    def doubled(values: jax.Array) -> jax.Array:
        return values * 2

    @program()
    def afterwards(values: jax.Array) -> jax.Array:
        return values + 7

    def looks() -> jax.Array:
        values = doubled(jnp.ones(3))
        return afterwards(values) if float(values.sum()) > 0 else values

    compile_ahead(looks)
    assert "jit(doubled)" in compiled()
    assert rehearsing() is None
    np.testing.assert_array_equal(looks(), 9.0)


def test_an_error_in_a_rehearsal_is_the_callers() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compile_ahead(fails)
    assert rehearsing() is None


def test_a_rehearsal_computes_nothing() -> None:
    computed: list[object] = []
    watched = Program(lambda values: jax.debug.callback(computed.append, values) or values + 1)
    compile_ahead(lambda: watched(jnp.zeros(2)))
    assert computed == []
    jax.block_until_ready(watched(jnp.zeros(2)))
    jax.effects_barrier()
    assert len(computed) == 1


def test_shapes_keep_types_and_weakness() -> None:
    weak, strong = jax.typeof(jnp.asarray(1.0)), jax.typeof(jnp.zeros((2, 3), jnp.float32))
    got = shapes([jnp.asarray(1.0), jnp.zeros((2, 3), jnp.float32)])
    assert [(each.shape, each.dtype, each.weak_type) for each in got] == [
        (each.shape, each.dtype, each.weak_type) for each in (weak, strong)
    ]


@pytest.mark.parametrize("preset", ["small", "fair-mlp"])
def test_a_round_finds_its_large_programs_compiled(
    preset: str, compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its results are those of a round that was not rehearsed, bit for bit."""
    monkeypatch.setattr(programs, "_NOTED", set())  # JAX may have dropped what earlier tests compiled
    few = ["cell.num_devices=3", "data.samples_per_device=40", "compute.max_iterations=6"]
    scenario = load_scenario(preset, [*few, "compute.min_iterations=1"])
    order = Order.checked(scenario, ("proposed",), (0,), 1)
    cells = [Experiment(order).cell(next(order.tracks())) for _ in range(2)]
    rehearsed, plain = (cell.start() for cell in cells)
    cells[0].compile_ahead(rehearsed)
    compiled()
    one, record = cells[0].round(rehearsed, 0)
    assert not LARGE & set(compiled())
    other, same = cells[1].round(plain, 0)
    for got, expected in zip(jax.tree.leaves((one, record)), jax.tree.leaves((other, same)), strict=True):
        np.testing.assert_array_equal(_bits(got), _bits(expected))


def _bits(leaf: object) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(leaf))
    return np.asarray(leaf)
