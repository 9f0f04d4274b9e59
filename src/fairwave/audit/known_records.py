"""Records and copies of the model whose clipped gradients the auditor works out on its own."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

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
CHUNK = 32
"""Gradients that are worked out at a time."""
LOUD, DOUBLINGS = 4.0, 60
"""Lengths of gradients of known records, in clip lengths, at least, and how often inputs are doubled to reach it."""


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
        if np.linalg.norm(next(clipped_gradients(model, copy, dark, 1.0))) < SILENT:
            return copy
    raise ScenarioError(
        f"learning.model: no bias of '{learning.model}' makes it certain of a class, so that the audit cannot see "
        "noise alone; audit the privacy parameters with model 'mlp', whose training code is the same"
    )


def clipped_gradients(model: Model, copy: NamedArrays, records: Records, clip_norm: float) -> Iterator[np.ndarray]:
    """Each record's own gradient, clipped, in multiples of the clip length: some rows at a time.

    By plain differentiation in double precision; rows of records that are not finite, or whose gradient is not, are
    zero.
    """
    for start in range(0, len(records.labels), CHUNK):
        inputs = np.asarray(records.inputs[start : start + CHUNK], np.float64)
        usable = np.isfinite(inputs).all(axis=1, keepdims=True)
        # In a vectorised convolution, what is not finite would spread from one record to the next.
        found = _gradients(model, copy, np.where(usable, inputs, 0.0), records.labels[start : start + CHUNK])
        rows = np.where(usable & np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)
        yield rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), clip_norm)


def surprising(model: Model, copy: NamedArrays, inputs: np.ndarray) -> Records:
    """Records of the class that a copy takes for least likely, so that their gradients do not vanish."""
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    if model.logits is None:
        raise ScenarioError("learning.model: a model without classes cannot be audited; choose one with classes")
    return Records(inputs, np.argmin(model.logits(tree_of(copy, shapes), jnp.asarray(inputs)), axis=1).astype(np.int32))


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
    """Random inputs, each of its least likely class, loud enough for clipping to act on it."""
    draw, copy = np.random.default_rng(5), ordinary_copy(model)
    inputs = draw.standard_normal((count, learning.layer_sizes[0])).astype(np.float32)
    records = surprising(model, copy, inputs)
    for _ in range(DOUBLINGS):
        if _are_loud(next(clipped_gradients(model, copy, records, LOUD * clip_norm))):
            break
        records = surprising(model, copy, np.float32(2.0) * records.inputs)
    rows = np.concatenate([some.astype(np.float32) for some in clipped_gradients(model, copy, records, clip_norm)])
    return KnownRecords(records, copy, rows, (rows @ rows.T).astype(np.float64))


def _are_loud(rows: np.ndarray) -> bool:
    """Whether clipping has acted on every row."""
    return bool(np.linalg.norm(rows, axis=1).min() > 1.0 - 1e-9)


def _gradients(model: Model, copy: NamedArrays, inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    with double_precision():
        shapes = jax.eval_shape(model.init, jax.random.key(0))
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), tree_of(copy, shapes))
        return np.asarray(_differentiated(model, params, jnp.asarray(inputs), jnp.asarray(labels)))


@functools.partial(jax.jit, static_argnums=0)
def _differentiated(model: Model, params: Tree, inputs: jax.Array, labels: jax.Array) -> jax.Array:
    def one(single: jax.Array, label: jax.Array) -> jax.Array:
        tree = jax.grad(lambda at: model.losses(at, single[None], label[None])[0])(params)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)])

    return jax.vmap(one)(inputs, labels)
