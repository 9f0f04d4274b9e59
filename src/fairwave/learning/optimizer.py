"""How a device turns gradients into steps: along the gradient, with momentum, or by Adam.

The state of an optimizer lives for one round: every round begins anew from the received copy. Whatever an optimizer
does with gradients that are clipped and noised already is post-processing, and costs no privacy.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import optax

from fairwave.learning.model import Tree
from fairwave.learning.pull import noise_gain_under_pull
from fairwave.scenario.learning_parameters import Learning, OptimizerName
from fairwave.types import Count, Scalar

SECOND_MOMENT, SMALLEST = 0.999, 1e-8
"""Adam's second decay and the constant that keeps its divisor from zero, as its authors have them."""


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """An optimizer of local training; hashable, so that programs are compiled once for each."""

    name: OptimizerName = "sgd"
    momentum: float = 0.9
    """Share of the last direction that is kept in the next: momentum's, or Adam's first decay."""

    def start(self, params: Tree) -> Tree:
        """The state before the first step of a round."""
        return self._rule().init(params)

    def direction(self, gradient: Tree, state: Tree) -> tuple[Tree, Tree]:
        """The direction in which the model moves, by the learning rate times its length, and the next state."""
        direction, after = self._rule().update(gradient, state)
        return direction, after

    def noise_gain(self, steps: Count, gradient_noise_std: Scalar, shrinkage: Scalar | float | None = None) -> Scalar:
        """Std of the noise that so many steps of rate 1 leave in each value of the model.

        `gradient_noise_std` is that of the noise in each step's gradient, drawn independently. The noise of a step that
        is followed by k - 1 others arrives (1 - m^k) / (1 - m) times, for momentum m, which is exact. Adam divides by
        the root mean square of its gradients, which is the noise's std where noise is most of them; its first moment is
        corrected for having begun at zero. With less noise in the gradients, less is left, so that the value is an
        estimate from above up to the fluctuation of the root mean square.

        `shrinkage` is learning rate times pull where every step is pulled towards a fixed model, and None otherwise.
        """
        if shrinkage is not None:
            if self.name == "adam":
                raise ValueError("the noise that Adam leaves under a pull is not known; take 'sgd' or 'momentum'")
            kept = self.momentum if self.name == "momentum" else 0.0
            return gradient_noise_std * noise_gain_under_pull(steps, kept, shrinkage)
        count = steps.astype(jnp.float64)
        if self.name == "sgd":
            return gradient_noise_std * jnp.sqrt(count)
        kept = self.momentum
        if self.name == "adam":
            return _corrected_gain(steps, kept)
        squares = (
            count
            - 2.0 * kept * (1.0 - kept**count) / (1.0 - kept)
            + kept**2 * (1.0 - kept ** (2.0 * count)) / (1.0 - kept**2)
        )
        return gradient_noise_std * jnp.sqrt(squares) / (1.0 - kept)

    def gradient_weight(self, steps: Scalar | float) -> Scalar | float:
        """Sum of the weights with which the gradients of so many steps of rate 1 are in the change of the model.

        It is the 1-norm of the vector a of Wang, Liu, Liang, Joshi, Poor, "Tackling the Objective Inconsistency Problem
        in Heterogeneous Federated Optimization", NeurIPS 2020. The gradient of a step that is followed by k - 1 others
        counts (1 - m^k) / (1 - m) times, for momentum m.
        """
        if self.name == "adam":
            raise ValueError("Adam's steps are no weighted sum of gradients; take 'sgd' or 'momentum'")
        if self.name == "sgd":
            return steps
        kept = self.momentum
        return (steps - kept * (1.0 - kept**steps) / (1.0 - kept)) / (1.0 - kept)

    def _rule(self) -> optax.GradientTransformation:
        if self.name == "momentum":
            return optax.trace(decay=self.momentum)
        if self.name == "adam":
            return optax.scale_by_adam(b1=self.momentum, b2=SECOND_MOMENT, eps=SMALLEST)
        return optax.identity()


def _corrected_gain(steps: Count, kept: float) -> Scalar:
    """Std of the sum of so many first moments of unit noise, each divided by 1 - m^t as Adam does in step t.

    The noise of step i is in the moments of all later steps t, m^(t - i) (1 - m) / (1 - m^t) times; the sum over t is
    built up from the last step backwards.
    """

    def earlier(number: Count, carried: tuple[Scalar, Scalar]) -> tuple[Scalar, Scalar]:
        arrives, squares = carried
        step = (steps - number).astype(jnp.float64)
        arrives = kept * arrives + (1.0 - kept) / (1.0 - kept**step)
        return arrives, squares + arrives**2

    zero = jnp.zeros((), jnp.float64)
    return jnp.sqrt(jax.lax.fori_loop(0, steps, earlier, (zero, zero))[1])


def optimizer_of(learning: Learning) -> Optimizer:
    """The optimizer that a scenario names."""
    return Optimizer(learning.optimizer, learning.momentum)


def rate_in(learning_rate: float, rate_decay: float, round_index: Count) -> Scalar | float:
    """The learning rate of a round: the first one's, times the decay once for every round before."""
    if rate_decay == 1.0:
        return learning_rate
    return learning_rate * jnp.asarray(rate_decay, jnp.float32) ** round_index.astype(jnp.float32)
