"""Tests compute in double precision, and broadcasting of unequal ranks is an error."""

from __future__ import annotations

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
