"""What a privacy mode asks of a cell: how devices train, what they may spend, and what each message costs."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.engine.private_training import Protection
from fairwave.errors import ScenarioError
from fairwave.learning.model import Model
from fairwave.privacy.accounting import Kind
from fairwave.privacy.budget import most_releases
from fairwave.privacy.noise import floating_point_delta
from fairwave.privacy.sampling import overflow_probability, sampling_probability, sufficient_capacity
from fairwave.scenario.parameters import Scenario

SHADES = 1.05
"""Budgets are worked out for holdings on a geometric ladder with this ratio, each device's rounded down to a rung."""


class Guard:
    """Of one scenario, for devices that hold so many samples each."""

    def __init__(self, scenario: Scenario, counts: np.ndarray, num_parameters: int) -> None:
        privacy, learning = scenario.privacy, scenario.learning
        self.mode, self.clip_norm = privacy.mode, privacy.clip_norm or 0.0
        self.noise_multiplier = privacy.noise_multiplier or 0.0
        self.exchange_noise_multiplier = privacy.exchange_noise_multiplier or 0.0
        self.max_epsilon, self.delta = privacy.max_epsilon, privacy.delta
        self.rounding_delta = floating_point_delta(privacy.noise_source, num_parameters)
        self.batch_size = learning.batch_size
        self.sampling = np.asarray(sampling_probability(learning.batch_size, jnp.asarray(counts)))
        self.protection: Protection | None = None
        self.lost_delta = np.full(counts.shape, self.rounding_delta)
        if self.mode == "provable":
            capacity = max(sufficient_capacity(learning.batch_size, int(count), self.delta) for count in set(counts))
            self.protection = Protection(
                clip_norm=self.clip_norm,
                noise_multiplier=self.noise_multiplier,
                exchange_noise_multiplier=privacy.exchange_noise_multiplier if learning.gradient_exchange else None,
                capacity=capacity,
                source=privacy.noise_source,
            )
            self.lost_delta = self.lost_delta + [
                overflow_probability(int(count), float(share), capacity)
                for count, share in zip(counts, self.sampling, strict=True)
            ]
        self._counts = counts

    @functools.cached_property
    def budget(self) -> np.ndarray | None:
        """Steps ('provable') or rounds ('device') that each device may take part in; None without a limit."""
        with jax.enable_x64(True):
            return self._most(self._counts)

    def _most(self, counts: np.ndarray) -> np.ndarray | None:
        if self.max_epsilon is None:
            return None
        if self.mode == "device":
            one = most_releases((self.noise_multiplier, 1.0), self.max_epsilon, self.delta, self.rounding_delta)
            return np.full(counts.shape, one)
        # Fewer samples mean a larger share of them in every batch, and so fewer steps: rounding down is safe.
        lost = float(self.lost_delta.max())
        rungs = np.maximum(1, np.floor(SHADES ** np.floor(np.log(counts) / np.log(SHADES)))).astype(int)
        if len(set(counts)) == 1:
            rungs = counts
        allowed = {rung: most_releases(self._kind(rung), self.max_epsilon, self.delta, lost) for rung in set(rungs)}
        return np.array([allowed[rung] for rung in rungs])

    def _kind(self, count: int) -> Kind:
        return self.noise_multiplier, float(sampling_probability(self.batch_size, jnp.asarray(count)))


def parameters_of(model: Model) -> int:
    """Numbers in a model; all in single precision or better, without which clipping bounds nothing."""
    leaves = jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0)))
    for leaf in leaves:
        if leaf.dtype not in (jnp.float32, jnp.float64):
            raise ScenarioError(f"model: a parameter of type {leaf.dtype}; make all of them float32")
    return sum(int(np.prod(leaf.shape)) for leaf in leaves)
