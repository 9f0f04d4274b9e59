"""Records and copies of the model whose clipped gradients the auditor works out on its own."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.audit.device_bench import Records
from fairwave.double_precision import double_precision
from fairwave.errors import ScenarioError
from fairwave.learning.model import Model, Tree
from fairwave.learning.named_arrays import NamedArrays, named_arrays, names_of, tree_of
from fairwave.scenario.learning_parameters import Learning

SATURATED = 40.0
"""A bias at which single-precision softmax is certain of its class, and still far from rounding noise away."""
SILENT = 1e-6
"""Length of a gradient that counts as none."""
LOUD = 4.0
"""Lengths of gradients of known records, in clip lengths, at least."""


def leaves_of(model: Model) -> dict[str, slice]:
    """Which part of a flat vector belongs to which leaf."""
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    sizes = [int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(shapes)]
    ends = np.cumsum(sizes)
    return {
        name: slice(int(end - size), int(end)) for name, size, end in zip(names_of(shapes), sizes, ends, strict=True)
    }


def ordinary_copy(model: Model, number: int = 0) -> NamedArrays:
    """A freshly drawn model."""
    return named_arrays(jax.device_get(model.init(jax.random.key(1_000 + number))))


def blank_records(learning: Learning, count: int) -> Records:
    """Dark records, all of class 0."""
    return Records(np.zeros((count, learning.layer_sizes[0]), np.float32), np.zeros(count, np.int32))


def silent_copy(model: Model, learning: Learning) -> NamedArrays:
    """A copy under which the gradient of a dark record of class 0 is zero, so that noise is alone."""
    blank, dark = {name: np.zeros_like(leaf) for name, leaf in ordinary_copy(model).items()}, blank_records(learning, 1)
    for name in reversed([name for name, leaf in blank.items() if leaf.shape == learning.layer_sizes[-1:]]):
        copy = {**blank, name: blank[name].copy()}
        copy[name][0] = SATURATED
        if np.linalg.norm(gradients(model, copy, dark)) < SILENT:
            return copy
    raise ScenarioError(
        f"learning.model: no bias of '{learning.model}' makes it certain of a class, so that the audit cannot see "
        "noise alone; audit the privacy parameters with model 'mlp', whose training code is the same"
    )


def gradients(model: Model, copy: NamedArrays, records: Records) -> np.ndarray:
    """Each record's own gradient, by plain differentiation in double precision; a row of zeros if not finite."""
    with double_precision():
        params = _in_double(model, copy)
        rows = [
            np.asarray(_gradients(model, params, jnp.asarray(some, jnp.float64), jnp.asarray(labels)))
            for some, labels in zip(_chunks(records.inputs), _chunks(records.labels), strict=True)
        ]
    found = np.concatenate(rows)
    return np.where(np.isfinite(found).all(axis=1)[:, None], found, 0.0)


def clipped(rows: np.ndarray, clip_norm: float) -> np.ndarray:
    """Gradients clipped to length 1, in multiples of the clip length."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, clip_norm))


@dataclasses.dataclass(frozen=True)
class KnownRecords:
    """Records that show in a sum one by one: their clipped gradients are linearly independent."""

    records: Records
    copy: NamedArrays
    rows: np.ndarray
    """Clipped gradients, one row per record, in single precision."""
    gram: np.ndarray
    """Inner products of the rows."""

    def decoded(self, sums: np.ndarray, count: int) -> np.ndarray:
        """How often each of the first records is in each sum, by least squares."""
        projections = self.rows[:count] @ sums.T.astype(np.float32)
        return np.asarray(np.linalg.solve(self.gram[:count, :count], projections.astype(np.float64)).T)

    def covariance(self, count: int) -> np.ndarray:
        """Covariance of that estimate where noise has variance 1."""
        return np.asarray(np.linalg.inv(self.gram[:count, :count]))


@functools.lru_cache(maxsize=2)
def known_records(model: Model, learning: Learning, clip_norm: float, count: int) -> KnownRecords:
    """Random inputs of random classes, loud enough for clipping to act on each of them."""
    draw, copy = np.random.default_rng(5), ordinary_copy(model)
    inputs = draw.standard_normal((count, learning.layer_sizes[0])).astype(np.float32)
    labels = draw.integers(0, learning.layer_sizes[-1], count).astype(np.int32)
    records = Records(inputs, labels)
    while np.linalg.norm(gradients(model, copy, Records(inputs[:32], labels[:32])), axis=1).min() < LOUD * clip_norm:
        inputs = inputs * np.float32(2.0)
        records = Records(inputs, labels)
    rows = clipped(gradients(model, copy, records), clip_norm).astype(np.float32)
    return KnownRecords(records, copy, rows, (rows @ rows.T).astype(np.float64))


def _in_double(model: Model, copy: NamedArrays) -> Tree:
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree_of(copy, shapes))


def _chunks(values: np.ndarray, size: int = 32) -> list[np.ndarray]:
    return [values[start : start + size] for start in range(0, len(values), size)]


@functools.partial(jax.jit, static_argnums=0)
def _gradients(model: Model, params: Tree, inputs: jax.Array, labels: jax.Array) -> jax.Array:
    def one(single: jax.Array, label: jax.Array) -> jax.Array:
        tree = jax.grad(lambda at: model.losses(at, single[None], label[None])[0])(params)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)])

    return jax.vmap(one)(inputs, labels)
