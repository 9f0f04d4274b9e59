"""Canaries in the gradient that a device exchanges before it trains."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.audit.training_canaries import canary_bank, canary_model, own_pull, present_first
from fairwave.audit.transcript import Claim, Transcript, coin_flips
from fairwave.double_precision import double_precision
from fairwave.engine.device_programs import gradient_program
from fairwave.engine.device_side import HeldSamples, SharedInputs
from fairwave.keys import run_key
from fairwave.privacy.noise import Source
from fairwave.privacy.protection import Protection


@dataclasses.dataclass(frozen=True)
class ExchangeSubject:
    """The gradient over all of a device's records, as mode 'provable' lets it leave the device."""

    clip_norm: float = 1.0
    source: Source = "simulation"
    name: str = "exchanged gradient"

    def run(self, claim: Claim, num_canaries: int, seed: int) -> Transcript:
        """One gradient a round, of the same model; see `Subject`."""
        present = coin_flips(num_canaries, seed)
        members, count = present_first(present)
        with double_precision():
            model = canary_model(num_canaries)
            zero = jax.tree.map(lambda leaf: jnp.zeros_like(leaf)[None], model.init(run_key(0)))
            own = (zero, HeldSamples(jnp.asarray(members)[None], jnp.asarray([count])), jnp.asarray([0]))
            gradient = gradient_program(model, self.protection(claim))
            bank = canary_bank(num_canaries)
            weights = [
                -np.asarray(gradient(SharedInputs(run_key(seed), jnp.asarray(turn), *bank), own)[1][0]["weight"][0])
                for turn in range(claim.rounds)
            ]
        seen = own_pull(weights) * count / self.clip_norm
        return Transcript(present, seen, seen)

    def protection(self, claim: Claim) -> Protection:
        """The protection that the exchange is given."""
        return Protection(self.clip_norm, claim.multiplier, claim.multiplier, 8, self.source)
