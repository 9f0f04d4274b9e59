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
    """How much noise, for whom, and what may be claimed."""

    mode: Annotated[str, named(PRIVACY_MODES), known(PRIVACY_MODES)]
    """What is proved: 'paper' nothing, 'provable' each record (noise on devices), 'device' all of a device's data."""
    epsilon: Annotated[float, *one(Limit(NUMBER, 0.0, 1e3))]
    """Budget eps_g that sets the noise in one copy of the model; nominal wherever sensitivity is not proved."""
    delta: Probability
    """Leakage probability: delta_g of one copy, and the delta at which proved totals are given."""
    calibration: Literal["classical", "analytic"] = "classical"
    """From budget to noise: the paper's formula, proved for budgets below 1 only, or the least noise that serves."""
    sensitivity: Positive
    """Nominal L2 sensitivity S_f of the released model."""
    sensitivity_spread: Below1 = 0.0
    """How far the sensitivity fluctuates from round to round, evenly, as a share of its value; in mode 'paper'."""
    deviation_weight: Below1
    """Weight theta of the deviation factor in the noise; below 1, or the noise is infinite."""
    similarity: Literal["literal", "update", "leave_one_out", "training"]
    """What an update is compared with to score its device; 'training': what the access point's own training gives."""
    similarity_memory: Below1 = 0.0
    """Share of the last score kept in the next (exponential moving average)."""
    local_noise: bool
    """Devices add Gaussian noise of the same scale to their updates (Algorithm 1)."""
    copies: Literal["independent", "nested"]
    """How the noise of different devices' copies is drawn."""
    broadcast: bool = False
    """Schemes with the same noise level for all send everybody one noisy copy, instead of a draw each."""
    overwrite_model: bool = False
    """The access point goes on from its noisy model, as Algorithm 1 is printed; in mode 'paper'."""
    clip_norm: Annotated[float, *one(Limit(NUMBER, 1e-6, 1e6))] | None = None
    """Length to which each record's gradient ('provable') or each device's update ('device') is clipped."""
    noise_multiplier: Multiplier | None = None
    """Noise std over clip_norm: in the sum of every local step ('provable') or every round ('device')."""
    exchange_noise_multiplier: Multiplier | None = None
    """The same for the gradient that devices exchange before training ('provable'). Default: none may be exchanged."""
    max_epsilon: Positive | None = None
    """Proved total at which a device stops taking part, before it would exceed it."""
    noise_source: Literal["simulation", "hardened", "exact"] = "simulation"
    """Source of proved noise: seeded (not for deployment), the system's randomness on a grid, or OpenDP's sampler."""

    publish_class_counts: bool = False
    """In modes that prove, store and export how many samples of each class a device holds, which no proof covers."""

    @model_validator(mode="after")
    def _formula_is_proved(self) -> Privacy:
        if self.calibration == "classical" and self.epsilon >= CLASSICAL_LIMIT:
            raise ValueError(
                f"epsilon {self.epsilon:g} is out of range: the classical formula is proved below 1 only; lower it, or "
                "set calibration to 'analytic'"
            )
        return self
