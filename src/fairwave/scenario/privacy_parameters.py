"""How much noise, for whom, and what may be claimed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from fairwave.extensions import PRIVACY_MODES
from fairwave.scenario.group import Group
from fairwave.scenario.names import known, named
from fairwave.scenario.quantity import Limit, Positive, one
from fairwave.units import NUMBER

Probability = Annotated[float, *one(Limit(NUMBER, 0.0, 1.0 - 1e-12))]
Below1 = Annotated[float, *one(Limit(NUMBER, 0.0, 1.0 - 1e-12, low_allowed=True))]

Multiplier = Annotated[float, *one(Limit(NUMBER, 0.1, 1e6, low_allowed=True))]

CLASSICAL_LIMIT = 1.0
"""The classical noise formula is proved for epsilon below this."""


class Privacy(Group):
    """This table says how much noise is added, for whom, and what may be claimed."""

    mode: Annotated[str, named(PRIVACY_MODES), known(PRIVACY_MODES)]
    """The mode says what is proved: 'paper' proves nothing, 'provable' protects each record (noise on devices),
    'device' protects all data of a device."""
    epsilon: Annotated[float, *one(Limit(NUMBER, 0.0, 1e3))]
    """This budget sets the noise in one copy of the model (eps_g in the paper). It is nominal, which means not proved,
    wherever the sensitivity is not enforced."""
    delta: Probability
    """This is the leakage probability: delta_g of one copy in the paper, and the delta at which proved totals are
    given."""
    calibration: Literal["classical", "analytic"] = "classical"
    """This is how the noise follows from the budget: 'classical' is the paper's formula, which is proved for budgets
    below 1 only, and 'analytic' is the least noise that suffices."""
    sensitivity: Positive
    """This is the nominal L2 sensitivity of the released model (S_f in the paper)."""
    sensitivity_spread: Below1 = 0.0
    """In mode 'paper', the sensitivity varies from round to round by up to this share of its value, uniformly."""
    deviation_weight: Below1
    """The deviation factor has this weight in the noise (theta in the paper). It has to be below 1, or the noise is
    infinite."""
    similarity: Literal["literal", "update", "leave_one_out", "training"]
    """A device's score compares its update with this reference. 'training' compares it with the access point's own
    training."""
    similarity_memory: Below1 = 0.0
    """The next score keeps this share of the last one (an exponential moving average)."""
    local_noise: bool
    """If true, devices add Gaussian noise of the same scale to their updates (Algorithm 1)."""
    copies: Literal["independent", "nested"]
    """The noise in the copies of different devices is drawn in this way."""
    broadcast: bool = False
    """If true, schemes with the same noise level for all devices send one noisy copy to all of them. If false, each
    copy has its own noise."""
    overwrite_model: bool = False
    """In mode 'paper', true makes the access point continue from its noisy model, as Algorithm 1 is printed."""
    clip_norm: Annotated[float, *one(Limit(NUMBER, 1e-6, 1e6))] | None = None
    """Each record's gradient ('provable') or each device's update ('device') is clipped to this length."""
    noise_multiplier: Multiplier | None = None
    """This is the noise's standard deviation divided by clip_norm, in the sum of every local step ('provable') or every
    round ('device')."""
    exchange_noise_multiplier: Multiplier | None = None
    """This is the noise multiplier of the gradient that devices exchange before training ('provable'). Default: none,
    and no gradient may be exchanged."""
    max_epsilon: Positive | None = None
    """A device stops taking part before its proved total would exceed this."""
    noise_source: Literal["simulation", "hardened", "exact"] = "simulation"
    """Proved noise comes from this source: 'simulation' is seeded (not for deployment), 'hardened' uses the operating
    system's randomness on a grid, 'exact' uses OpenDP's sampler."""

    publish_class_counts: bool = False
    """If true, modes that prove something still store and export how many samples of each class a device holds. No
    proof covers these counts."""

    @model_validator(mode="after")
    def _formula_is_proved(self) -> Privacy:
        if self.calibration == "classical" and self.epsilon >= CLASSICAL_LIMIT:
            raise ValueError(
                f"epsilon {self.epsilon:g} is out of range: the classical formula is proved below 1 only; lower it, or "
                "set calibration to 'analytic'"
            )
        return self
