"""A stored model: the access point's, or the copy of it that a device was sent."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.double_precision import double_precision, training_precision
from fairwave.engine.model_copies import AddressedCopies, CopyAddress
from fairwave.errors import StoreError
from fairwave.keys import run_key
from fairwave.learning.named_arrays import NamedArrays
from fairwave.runs.packing import unpack

_ADDRESS = ("place", "released", "std", "noise_index")


def copy_in(content: bytes, names: Sequence[str], device: int, seed: int) -> NamedArrays:
    """The copy that a device holds, in a checkpoint or a kept round; `names` are those of the model's arrays.

    A simulation stores what copies are made of: the copy is made anew from the model and the noise that the seed gives.
    Where the access point keeps copies as models, as that of a federation does, it is read as it is.
    """
    held = {name.partition("copies.")[2]: array for name, array in unpack(content).items() if "copies." in name}
    if not held:
        raise StoreError(
            "devices' copies: not found, since the fairwave that wrote this round did not name them; run it again, or "
            "leave the device out"
        )
    models = [held[f"models.{name}"] for name in names]
    if "each.place" not in held:
        return dict(zip(names, (array[device] for array in models), strict=True))
    with double_precision():
        root = run_key(seed)
        address = CopyAddress(*(jnp.asarray(held[f"each.{part}"][device])[None] for part in _ADDRESS))
    with training_precision():
        made = AddressedCopies([jnp.asarray(array) for array in models], address).as_models(root)
    return dict(zip(names, (np.asarray(leaf)[0] for leaf in jax.device_get(made)), strict=True))
