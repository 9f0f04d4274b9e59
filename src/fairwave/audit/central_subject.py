"""The access point's release in a mode that trusts it: devices whose update is too long and points its own way."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fairwave.audit.blank_release import address_of, blank_state, released
from fairwave.audit.canary_tests import one_run, separation, weight
from fairwave.audit.claim import Claim, coin_flips
from fairwave.audit.copies_coalition import scale_finding
from fairwave.audit.dependence_tests import lags, release_pairs
from fairwave.audit.finding import Verdict
from fairwave.audit.noise_law import NoiseLaw
from fairwave.audit.noise_tests import leaf_scales, leaf_shapes, release_scales
from fairwave.double_precision import double_precision
from fairwave.engine.state import ServerState
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Scheme

CANARIES, ROUNDS, EPSILON = 1_000, 20, 3.0
"""Devices of which a random half has an update, rounds, and what these claim in all; noise is set to match."""
SPARE = 4_000
"""Coordinates that no canary uses: noise and nothing else."""
SILENT = 1e-12


@dataclasses.dataclass(frozen=True)
class CentralSubject:
    """What the access point does with updates, for one scheme."""

    scheme: Scheme
    privacy: Privacy
    """With the mode, the clip length and the source of noise; its multiplier is the claim's."""

    def verdict(self, seed: int) -> Verdict:
        """Rounds of the access point's own release function, each from the state that the last one left."""
        claim = Claim.of_total(EPSILON, ROUNDS)
        present = coin_flips(CANARIES, seed)
        alone, pooled = self._increments(claim, present, seed)
        clip = self.privacy.clip_norm or 1.0
        law = NoiseLaw.claimed(self.privacy.noise_source, claim.multiplier, clip)
        empty = np.concatenate([np.flatnonzero(~present), np.arange(CANARIES, CANARIES + SPARE)])
        noise, leaves = alone[:, empty], {"the model": slice(0, empty.size)}
        scores = pooled[:, :CANARIES].sum(axis=0)
        summed = noise.sum(axis=0) / (law.total_std * math.sqrt(ROUNDS))
        left = pooled[:, empty] / law.total_std
        findings = [
            leaf_scales(noise, law, leaves),
            release_scales(noise, law),
            leaf_shapes(noise, law, leaves),
            lags(noise, law),
            release_pairs(noise, law, [f"round {turn + 1}" for turn in range(ROUNDS)]),
            scale_finding("noise over all rounds", "variance of the noise in the last model", summed),
            scale_finding("noise left to a coalition", "variance of the copies' average", left, too_little_only=True),
            weight(alone[:, :CANARIES].sum(axis=0), present, claim),
            separation(scores, present, claim),
            one_run(scores, present, claim),
        ]
        return Verdict("release by the access point", findings)

    def _increments(self, claim: Claim, present: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """What every round adds to one device's copy and to the mean of all, in multiples of what a device may add."""
        clip, size = self.privacy.clip_norm or 1.0, CANARIES + SPARE
        alone, pooled, last = [], [], np.zeros(size)
        with double_precision():
            rows = jnp.where(jnp.asarray(present)[:, None], jnp.eye(CANARIES, size), 0.0)
            updates, state = (2.0 * clip * rows).astype(jnp.float32), blank_state(size, CANARIES)
            for turn in range(claim.rounds):
                state, copies = self.release(claim, state, updates, seed, turn)
                alone.append(copies[0] - last)
                pooled.append(np.mean(copies, axis=0) - last)
                last = copies[0]
        return np.stack(alone) * CANARIES / clip, np.stack(pooled) * CANARIES / clip

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
