"""Ten devices that pool their copies of one model: can they do better than the least noisy of them?"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from fairwave.audit.blank_release import address_of, blank_state, released
from fairwave.audit.hypothesis_tests import Finding, scale_test
from fairwave.double_precision import double_precision
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Scheme

MEMBERS = 10
SIZE = 20_000


@dataclasses.dataclass(frozen=True)
class CopiesSubject:
    """The access point's copies for devices that deviate differently, where their noise is for fairness."""

    scheme: Scheme
    privacy: Privacy
    name: str = "copies of the model"

    def findings(self, seed: int, alarm: float) -> list[Finding]:
        """The least noisy copy has the noise it should; the coalition's best average has no less.

        Nobody takes part, so that everybody gets the blank model at the level of its last deviation.
        """
        deviation = np.linspace(0.0, 1.0, MEMBERS)
        with double_precision():
            levels = np.asarray(self.scheme.noise_levels(self.privacy, jnp.asarray(deviation)))
            state = dataclasses.replace(blank_state(SIZE, MEMBERS), deviation=jnp.asarray(deviation))
            silence, nobody = jnp.zeros((MEMBERS, SIZE), jnp.float32), jnp.zeros(MEMBERS, bool)
            given = released(self.scheme, self.privacy, state, silence, nobody, address_of(seed, 0))
        copies = np.asarray(given.server.copies.of_devices["w"], np.float64)
        weights = 1.0 / levels**2
        average = weights @ copies / weights.sum()
        return [
            scale_test("noise in the least noisy", copies[0] / levels[0], alarm),
            scale_test("noise left to a coalition", average / levels.min(), alarm, too_little_only=True),
        ]
