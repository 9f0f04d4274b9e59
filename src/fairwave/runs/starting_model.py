"""The model that a run begins with instead of a random one: a file, known by the digest of its parameters."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import jax
import jax.numpy as jnp

from fairwave.errors import StoreError
from fairwave.learning.model import Model, Tree
from fairwave.learning.model_files import parameters_like, read_arrays
from fairwave.learning.named_arrays import NamedArrays
from fairwave.runs.packing import pack


@dataclasses.dataclass(frozen=True)
class StartingModel:
    """A model in a file. Two are equal if their parameters are, wherever the files are."""

    path: str = dataclasses.field(compare=False)
    digest: str
    """SHA-256 of the parameters with their names, shapes and types."""

    @classmethod
    def at(cls, path: str | Path) -> StartingModel:
        """The model that a file holds now."""
        return cls(str(Path(path).resolve()), _digest(read_arrays(Path(path))))

    def caveat(self) -> str:
        """What no statement about the run covers."""
        return (
            f"Training started from a model in a file (digest {self.digest[:12]}). What that model reveals about "
            "the data of its own training is not counted here. If these are the same data, add what that training "
            "spent."
        )

    def parameters(self, model: Model) -> Tree:
        """What the file holds, as the parameters of a model; refused if the file has changed."""
        if not Path(self.path).exists():
            raise StoreError(
                f"{self.path}: is gone, and the run began with that model; restore it, or give its new place with "
                "'fairwave run ... --init-from'"
            )
        arrays = read_arrays(Path(self.path))
        if _digest(arrays) != self.digest:
            raise StoreError(
                f"{self.path}: has changed since the run was begun with it; restore the old model, or start another "
                "run with --out"
            )
        like = jax.eval_shape(model.init, jax.random.key(0))
        return jax.tree.map(jnp.asarray, parameters_like(arrays, like, f"first model {self.path}"))


def _digest(arrays: NamedArrays) -> str:
    return hashlib.sha256(pack({name: arrays[name] for name in sorted(arrays)})).hexdigest()
