"""A behaviour of the scenario in a round in which some devices act so."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.adversaries.behaviour import Behaviour
from fairwave.learning.model import Tree


@dataclasses.dataclass(frozen=True)
class Active:
    """One entry of the scenario, in a round in which it acts."""

    behaviour: Behaviour
    mask: np.ndarray
    """A mask of the devices that misbehave so."""
    strength: float

    def only(self, acted: Tree, honest: Tree) -> Tree:
        """What its devices do, and what all others do."""
        mask = jnp.asarray(self.mask)
        return jax.tree.map(
            lambda new, old: jnp.where(mask.reshape(-1, *[1] * (old.ndim - 1)), new, old), acted, honest
        )
