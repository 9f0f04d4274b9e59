"""What private training costs, beside plain training of the same network on the same data; and what noise costs.

Every form is timed in turns with the plain one, so that a busy machine slows both: read the ratios.

    python benchmarks/private_training.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.data import sources
from fairwave.double_precision import double_precision
from fairwave.engine.device_programs import training_program
from fairwave.engine.device_side import HeldSamples, LocalTraining, SharedInputs, TrainingInputs
from fairwave.keys import run_key
from fairwave.learning.models import model_of
from fairwave.privacy.exact_noise import exactly_noised
from fairwave.privacy.hardened_noise import hardened_noised
from fairwave.privacy.noise import standard_normal
from fairwave.privacy.protection import Protection
from fairwave.privacy.sampling import sufficient_capacity
from fairwave.scenario.loading import load_scenario

DEVICES, STEPS, TURNS = 10, 90, 7
LENGTH = 109_386


def main() -> None:
    """Print medians and ratios."""
    with double_precision():
        forms = _training_forms()
        took = {name: [] for name in forms}
        for turn in range(TURNS + 1):
            for name, form in forms.items():
                seconds = _timed(form)
                took[name] += [seconds] if turn else []  # the first turn compiles
        plain = took["plain"]
        print(f"{DEVICES} devices, {STEPS} steps of 128 samples, MLP 784-128-64-10; {TURNS} turns each")
        for name, seconds in took.items():
            ratios = [one / other for one, other in zip(seconds, plain, strict=True)]
            per_step = statistics.median(seconds) / (DEVICES * STEPS) * 1e3
            print(f"  {name:28} {per_step:7.3f} ms a step, {statistics.median(ratios):5.2f} times plain", end="")
            print(f" ({min(ratios):.2f} to {max(ratios):.2f})")
        _noise()


def _training_forms() -> dict[str, Callable[[], object]]:
    learning, data = load_scenario("paper").learning, sources.load("mnist")
    model = model_of(learning)
    params = model.init(run_key(0))
    each = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (DEVICES, *leaf.shape)), params)
    share = data.train_labels.size // DEVICES
    samples = np.random.default_rng(0).permutation(DEVICES * share).reshape(DEVICES, share).astype(np.int32)
    counts = jnp.full(DEVICES, share, jnp.int32)
    own = TrainingInputs(
        copy=each,
        own_gradient=None,
        held=HeldSamples(jnp.asarray(samples), counts),
        trained_count=counts,
        flipped=jnp.zeros(DEVICES, bool),
        iterations=jnp.full(DEVICES, STEPS),
        index=jnp.arange(DEVICES),
    )
    shared = SharedInputs(run_key(0), jnp.asarray(0), jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels))
    capacity = sufficient_capacity(learning.batch_size, share, 1e-5)
    protections = {
        "plain": None,
        "private": Protection(1.0, 1.3, None, capacity, "simulation"),
        "private, hardened noise": Protection(1.0, 1.3, None, capacity, "hardened"),
    }

    def form(protection: Protection | None) -> Callable[[], object]:
        program = training_program(LocalTraining(model, learning.batch_size, 0.01, 0.0, protection=protection))
        return lambda: jax.block_until_ready(program(shared, own))

    return {name: form(protection) for name, protection in protections.items()}


def _noise() -> None:
    values, key = np.zeros(LENGTH), jax.random.key(0)
    seeded = jax.jit(lambda one: standard_normal(one, (LENGTH,)))
    jaxs = jax.jit(lambda one: jax.random.normal(one, (LENGTH,), jnp.float32))
    forms: dict[str, tuple[Callable[[], object], int]] = {
        "simulation (seeded)": (lambda: seeded(key).block_until_ready(), 21),
        "the same by jax.random.normal": (lambda: jaxs(key).block_until_ready(), 21),
        "hardened": (lambda: hardened_noised(values, 1.3), 21),
        "exact (OpenDP)": (lambda: exactly_noised(values, 1.3), 1),
    }
    print(f"noise on one vector of {LENGTH:,}")
    for name, (form, turns) in forms.items():
        form()
        print(f"  {name:30} {statistics.median(_timed(form) for _ in range(turns)) * 1e3:9.2f} ms")


def _timed(form: Callable[[], object]) -> float:
    start = time.perf_counter()
    form()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
