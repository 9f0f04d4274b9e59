"""One of everything that a plugin file can add to fairwave."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from fairwave import Behaviour, Callback, DataSet, DataSource, Defence, FadingLaw, ModelKind, Rule, Scheme, Tracker
from fairwave.defences.defence import refusing
from fairwave.learning.dense import Dense
from fairwave.learning.model import classifier
from fairwave.policy.deviation import fair_levels
from fairwave.policy.problem import Choice
from fairwave.privacy.accountants import Accountant
from fairwave.privacy.accounting import epsilon_of, renyi_epsilon
from fairwave.privacy.modes.nominal import Nominal

fewest = Rule(
    "fewest",
    "full power, and the fewest iterations",
    lambda problem, preferences, effort: Choice(problem.device.min_iterations, problem.max_log_snr),
)
frugal = Scheme(
    name="frugal", summary="the fewest iterations, noise by contribution", plan=fewest, noise_levels=fair_levels
)
doubled = Behaviour("doubled", "sends twice its update", replace_update=lambda known: 2.0 * known.honest)
no_first_value = Defence(
    name="no_first_value",
    summary="catches updates whose first value is positive",
    order=50,
    judge=refusing("no_first_value", lambda settings, updates: updates.rows[:, 0] > 0.0),
    refuses=True,
)


def _tanh(learning):
    dense = Dense(learning.layer_sizes)
    return classifier(dense.init, lambda params, inputs: jnp.tanh(dense.logits(params, inputs)), learning.l2)


tanh_mlp = ModelKind("tanh_mlp", "dense layers with bounded scores", _tanh)


def _stripes() -> DataSet:
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 4, 500).astype(np.int32)
    inputs = (40 * labels[:, None] + draw.integers(0, 60, (500, 12))).astype(np.uint8)
    return DataSet(inputs[:400], labels[:400], inputs[400:], labels[400:])


stripes = DataSource("stripes", "four kinds of stripes", _stripes)


class Weibull(FadingLaw):
    """Fading whose amplitude is a Weibull variable of mean power 2."""

    name: ClassVar[str] = "weibull"
    law: Literal["weibull"]
    shape: float = 2.0

    @property
    def mean_power(self) -> float:
        """Mean of the fading gain."""
        return 2.0

    def gain(self, key):
        """One draw."""
        drawn = jax.random.exponential(key) ** (2.0 / self.shape)
        return self.mean_power * drawn / math.gamma(1.0 + 2.0 / self.shape)


class Cautious(Accountant):
    """The looser of the two bounds that come with fairwave."""

    name: ClassVar[str] = "cautious"
    summary: ClassVar[str] = "the larger of two bounds"

    def epsilon(self, delta: float) -> float:
        """Epsilon of all releases together at that delta."""
        return max(epsilon_of(self.releases, delta), renyi_epsilon(self.releases, delta))


class WithoutReports(Nominal):
    """The paper's noise, for schemes that have devices report nothing about their data."""

    name: ClassVar[str] = "without_reports"
    summary: ClassVar[str] = "the paper's noise, and no reported losses"

    def refuses_scheme(self, scheme) -> str | None:
        """Schemes that have devices report losses."""
        return f"'{scheme.name}' has devices report losses; choose another" if scheme.reports_losses else None


without_reports = WithoutReports()
silent = Tracker("silent", "follows training and says nothing", "fairwave", lambda folder: Callback())


@dataclasses.dataclass(frozen=True)
class NotAMember:
    """Something else that a file may hold."""

    name: str = "other"
