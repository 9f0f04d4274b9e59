"""A model's parameters as files that other tools read: safetensors, and NumPy's npz.

Parameters stand under their names, such as `0.weight`, in their own shapes: a dense layer's weight has inputs by
outputs, a convolution's height, width, channels in and channels out. What is known of the model goes with them as text.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from fairwave.errors import ArgumentError, OutputError, system_reason
from fairwave.learning.model import Tree
from fairwave.learning.named_arrays import NamedArrays, leaves_by_name, tree_of

ENDINGS = (".safetensors", ".npz")
METADATA = "__metadata__"
"""The entry of an npz file that has what is known of the model, as JSON."""


def write_arrays(path: Path, arrays: NamedArrays, metadata: Mapping[str, str]) -> None:
    """Write parameters; the ending of the file's name says in which format."""
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        if path.suffix.lower() == ".safetensors":
            from safetensors.numpy import save

            path.write_bytes(save(arrays, dict(metadata)))
        else:
            with path.open("wb") as handle:
                np.savez(handle, allow_pickle=False, **arrays, **{METADATA: np.asarray(json.dumps(dict(metadata)))})
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({system_reason(error)}); choose a writable folder") from None


def read_arrays(path: Path) -> NamedArrays:
    """The parameters in a file."""
    if path.suffix.lower() not in ENDINGS:
        raise ArgumentError(f"{path}: unknown ending '{path.suffix}' for a model; choose from {', '.join(ENDINGS)}")
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        if path.suffix.lower() == ".safetensors":
            return dict(load(path.read_bytes()))
        with np.load(path, allow_pickle=False) as held:
            return {name: held[name] for name in held.files if name != METADATA}
    except FileNotFoundError:
        raise ArgumentError(f"{path}: no such file; give a model that 'fairwave export' has written") from None
    except OSError as error:
        raise ArgumentError(f"{path}: cannot be read ({system_reason(error)}); give a readable file") from None
    except (SafetensorError, zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError) as error:
        raise ArgumentError(
            f"{path}: holds no model ({' '.join(str(error).split())}); give one that 'fairwave export' has written"
        ) from None


def parameters_like(arrays: NamedArrays, like: Tree, where: str) -> Tree:
    """Arrays as the parameters of a model, with its types; `like` has their names, shapes and types."""
    wanted = dict(leaves_by_name(like))
    for name in (name for name in wanted if name not in arrays):
        raise ArgumentError(f"{where}: has no array '{name}', which the scenario's model has; it has {_listed(arrays)}")
    for name in (name for name in arrays if name not in wanted):
        raise ArgumentError(f"{where}: array '{name}' is none of the scenario's model, which has {_listed(wanted)}")
    taken: NamedArrays = {}
    for name, leaf in wanted.items():
        array = arrays[name]
        if array.shape != leaf.shape:
            raise ArgumentError(
                f"{where}: '{name}' has shape {list(array.shape)}, and in the scenario's model it has "
                f"{list(leaf.shape)}; give a model of that size, or change learning.layer_sizes and channels"
            )
        if not np.issubdtype(array.dtype, np.floating) or not np.isfinite(array).all():
            raise ArgumentError(f"{where}: '{name}' holds values that are not finite numbers; give a trained model")
        taken[name] = array.astype(leaf.dtype)
    return tree_of(taken, like)


def _listed(names: Mapping[str, object]) -> str:
    some = ", ".join(f"'{name}'" for name in list(names)[:4])
    return some + (", ..." if len(names) > 4 else "") if names else "none"
