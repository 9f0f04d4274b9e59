"""Ten devices that pool their copies of one model: can they do better than the least noisy of them?"""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np

from fairwave.audit.blank_release import address_of, blank_state, released
from fairwave.audit.finding import Finding, Verdict
from fairwave.double_precision import double_precision
from fairwave.scenario.privacy_parameters import Privacy
from fairwave.schemes.scheme import Scheme

MEMBERS = 10
SIZE = 20_000


def scale_finding(test: str, looks_at: str, residuals: np.ndarray, *, too_little_only: bool = False) -> Finding:
    """Chi-square test that residuals, in units of their claimed std, have it."""
    from scipy.stats import chi2

    energy, count = float(np.sum(residuals**2)), residuals.size
    low = float(chi2.cdf(energy, count))
    probability = low if too_little_only else 2.0 * min(low, float(chi2.sf(energy, count)))
    measured = f"std {math.sqrt(energy / count):.3f} of the claimed"
    return Finding(test, looks_at, measured, "1 or more" if too_little_only else "1", probability)


@dataclasses.dataclass(frozen=True)
class CopiesSubject:
    """The access point's copies for devices that deviate differently, where their noise is for fairness."""

    scheme: Scheme
    privacy: Privacy

    def verdict(self, seed: int) -> Verdict:
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
        return Verdict(
            "copies of the model",
            [
                scale_finding(
                    "noise in the least noisy", "variance of the noise in the best copy", copies[0] / levels[0]
                ),
                scale_finding(
                    "noise left to a coalition",
                    "variance of the best average of ten devices' copies",
                    average / levels.min(),
                    too_little_only=True,
                ),
            ],
        )
