"""Canaries in the access point's release: devices whose update is too long and points its own way."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fairwave.audit.blank_release import address_of, blank_state, released
from fairwave.audit.transcript import Claim, Transcript, coin_flips
from fairwave.double_precision import double_precision
from fairwave.engine.state import ServerState
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Scheme

SPARE = 200
"""Coordinates that no canary uses: noise and nothing else."""
SILENT = 1e-12


@dataclasses.dataclass(frozen=True)
class CentralSubject:
    """What the access point of mode 'device' does with updates, for one scheme."""

    scheme: Scheme
    privacy: Privacy
    """With the mode, the clip length and the source of noise; its multiplier is the claim's."""
    name: str = "release by the access point"

    def run(self, claim: Claim, num_canaries: int, seed: int) -> Transcript:
        """Rounds of the access point's own release function, each from the state that the last one left."""
        present = coin_flips(num_canaries, seed)
        clip = self.privacy.clip_norm or 1.0
        with double_precision():
            size = num_canaries + SPARE
            rows = jnp.where(jnp.asarray(present)[:, None], jnp.eye(num_canaries, size), 0.0)
            updates, state = (2.0 * clip * rows).astype(jnp.float32), blank_state(size, num_canaries)
            alone, pooled, last = [], [], np.zeros(size)
            for turn in range(claim.rounds):
                state, copies = self.release(claim, state, updates, seed, turn)
                alone.append(copies[0] - last)
                pooled.append(np.mean(copies, axis=0) - last)
                last = copies[0]
        scale = num_canaries / clip
        return Transcript(present, np.stack(alone) * scale, np.stack(pooled) * scale)

    def release(
        self, claim: Claim, state: ServerState, updates: Array, seed: int, turn: int
    ) -> tuple[ServerState, np.ndarray]:
        """One round: the next state, and every device's copy."""
        # Noise that is added for fairness would only hide the noise that proves.
        quiet = {"noise_multiplier": claim.multiplier, "sensitivity": SILENT}
        privacy = self.privacy.model_copy(update=quiet)
        everybody = jnp.ones(updates.shape[0], bool)
        given = released(self.scheme, privacy, state, updates, everybody, address_of(seed, turn))
        after = dataclasses.replace(state, global_params=given.server.global_params, copies=given.server.copies)
        return after, np.asarray(given.server.copies.of_devices["w"], np.float64)
