"""Canaries in a device's training: records whose gradient is far too long and points their own way."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.audit.transcript import Claim, Transcript, coin_flips
from fairwave.double_precision import double_precision
from fairwave.engine.device_programs import training_program
from fairwave.engine.device_side import HeldSamples, LocalTraining, SharedInputs, TrainingInputs
from fairwave.keys import run_key
from fairwave.learning.dense import Dense
from fairwave.learning.model import Model, classifier
from fairwave.privacy.noise import Source
from fairwave.privacy.protection import Protection

STEPS = 5
"""Local steps in one round."""
LOUDNESS = 1e3
"""Length of a canary's input: clipping has to act."""
RATE = 1e-9
"""So small that the model, and with it every gradient, stays where it was: rounds can be added up."""


@functools.cache
def canary_model(num_canaries: int, by_layer: bool = True) -> Model:
    """Softmax regression with an input per canary; the same object for the same size, so that it is compiled once."""
    dense = Dense((num_canaries, 2))
    return classifier(dense.init, dense.logits, taps=dense.taps if by_layer else None)


def canary_bank(num_canaries: int) -> tuple[jax.Array, jax.Array]:
    """Inputs and classes of all canaries: a unit matrix times the loudness, all of class 0."""
    return jnp.eye(num_canaries, dtype=jnp.float32) * LOUDNESS, jnp.zeros(num_canaries, jnp.int32)


def present_first(present: np.ndarray) -> tuple[np.ndarray, int]:
    """Canaries in the order in which a device holds them, those that are in before the others; and how many are."""
    return np.argsort(~present, kind="stable").astype(np.int32), int(present.sum())


def own_pull(weights: list[np.ndarray]) -> np.ndarray:
    """From gradients to coordinates: a canary pulls its own row along (1, -1); nothing pulls along (1, 1)."""
    along, across = (np.stack([row @ side for row in weights]) / np.sqrt(2.0) for side in ([1, -1], [1, 1]))
    return np.concatenate([along, across], axis=1)


@dataclasses.dataclass(frozen=True)
class TrainingSubject:
    """The code by which every device of mode 'provable' trains, on softmax regression with an input per canary."""

    clip_norm: float = 1.0
    source: Source = "simulation"
    by_layer: bool = True
    """Clip by layers' inputs and slopes, as dense models do; else sample by sample."""
    sampling: float = 1.0
    """Probability with which a canary that is in enters a batch."""
    name: str = "training on a device"

    def run(self, claim: Claim, num_canaries: int, seed: int) -> Transcript:
        """Rounds of the device's own training function, from the same model; see `Subject`."""
        present = coin_flips(num_canaries, seed)
        members, count = present_first(present)
        rounds = claim.rounds // STEPS
        with double_precision():
            bank = canary_bank(num_canaries)
            model = canary_model(num_canaries, self.by_layer)
            zero = jax.tree.map(jnp.zeros_like, model.init(run_key(0)))
            setting = LocalTraining(
                model=model,
                batch_size=num_canaries if self.sampling == 1.0 else max(1, round(self.sampling * count)),
                learning_rate=RATE,
                noise_std=0.0,
                protection=self.protection(claim, num_canaries),
            )
            own = TrainingInputs(
                copy=zero,
                own_gradient=None,
                held=HeldSamples(jnp.asarray(members), jnp.asarray(count)),
                trained_count=jnp.asarray(count),
                flipped=jnp.asarray(False),
                iterations=jnp.asarray(STEPS),
                index=jnp.asarray(0),
            )
            each = jax.tree.map(lambda leaf: leaf[None], own)
            train, root = training_program(setting), run_key(seed)
            weights = [
                np.asarray(train(SharedInputs(root, jnp.asarray(self.number(t)), *bank), each).update[0]["weight"][0])
                for t in range(rounds)
            ]
        expected = min(count, setting.batch_size)
        seen = own_pull(weights) * expected / (RATE * self.clip_norm)
        return Transcript(present, seen, seen)

    def protection(self, claim: Claim, num_canaries: int) -> Protection:
        """The protection that the training is given."""
        return Protection(self.clip_norm, claim.multiplier, None, num_canaries, self.source)

    def number(self, turn: int) -> int:
        """The round's number, from which its randomness follows."""
        return turn
