"""A pytree as named arrays and back: how models leave fairwave, in files and in messages."""

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


def names_of(like: Tree) -> list[str]:
    """The names of a tree's leaves, in their order."""
    return [name for name, _ in leaves_by_name(like)]


def _name(path: tuple[object, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
