"""A pytree as named arrays and back, for files, and these as one flat array and back, for messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from fairwave.learning.model import Tree

NamedArrays: TypeAlias = dict[str, np.ndarray]


def named_arrays(tree: Tree) -> NamedArrays:
    """A tree's leaves by their path, such as `0.weight`."""
    return {name: np.asarray(leaf) for name, leaf in leaves_by_name(tree)}


def leaves_by_name(tree: Tree) -> list[tuple[str, Any]]:
    """A tree's leaves, whatever they are, each with its name."""
    return [(_name(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]


def tree_of(arrays: Mapping[str, np.ndarray], like: Tree) -> Tree:
    """The tree that arrays were named after; `like` has its structure."""
    paths, structure = jax.tree_util.tree_flatten_with_path(like)
    return jax.tree.unflatten(structure, [jax.numpy.asarray(arrays[_name(path)]) for path, _ in paths])


def flattened(arrays: Mapping[str, np.ndarray], like: Mapping[str, np.ndarray]) -> np.ndarray:
    """All values in a row: the arrays in the order of `like`, which is that of the model's leaves, each row by row."""
    size, kind = flat_form(like)
    flat = np.empty(size, kind)
    np.concatenate([np.asarray(arrays[name]).ravel() for name in like], out=flat)
    return flat


def unflattened(flat: np.ndarray, like: Mapping[str, np.ndarray]) -> NamedArrays:
    """The arrays that were flattened; the last axis of `flat` is theirs, any axes before it stay as they are."""
    arrays, begin = {}, 0
    for name, agreed in like.items():
        end = begin + agreed.size
        part = flat[..., begin:end].reshape(*flat.shape[:-1], *agreed.shape)
        arrays[name], begin = part.astype(agreed.dtype, copy=False), end
    return arrays


def flat_form(like: Mapping[str, np.ndarray]) -> tuple[int, np.dtype[Any]]:
    """Length and type of the flat array: float32, or the smallest type that holds every leaf without loss."""
    return sum(agreed.size for agreed in like.values()), np.result_type(*(agreed.dtype for agreed in like.values()))


def names_of(like: Tree) -> list[str]:
    """The names of a tree's leaves, in their order."""
    return [name for name, _ in leaves_by_name(like)]


def _name(path: tuple[object, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
