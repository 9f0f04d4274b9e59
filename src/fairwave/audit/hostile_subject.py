"""Hostile copies: models made so that a gradient is longer than clipping takes it for, at the level of the engine.

A device refuses copies beyond reason before it trains; what is audited here is the line behind that.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.audit.audit_setting import LITTLE_NOISE, AuditSetting
from fairwave.audit.audited_cell import audited
from fairwave.audit.contribution_tests import sensitivity
from fairwave.audit.finding import Verdict
from fairwave.audit.known_records import ordinary_copy
from fairwave.double_precision import double_precision
from fairwave.engine.device_programs import training_program
from fairwave.engine.device_side import HeldSamples, SharedInputs, TrainingInputs, local_training
from fairwave.extensions import SCHEMES
from fairwave.keys import run_key
from fairwave.learning.named_arrays import NamedArrays, tree_of
from fairwave.privacy.modes.mode import mode_of

FINE_GAPS = np.arange(42.0, 48.5, 0.5)
"""Advantages of the right class, in logits, at which the squares of slopes begin to vanish in single precision."""
NEARLY_OVERFLOWING = (0.5, 0.9)
"""Activations behind such slopes, over the largest number whose square single precision can hold."""
WIDE_GAPS = np.array([30.0, 34.0, 38.0, 54.0, 62.0, 70.0, 82.0])
"""The same over a wide range, with activations that hide gradients of some clip lengths."""
EXCESS = (1.0, 100.0)
"""Lengths of these gradients, in clip lengths."""
SCALED = 20
"""Copies whose leaves have scales at random, over a wide range."""
READABLE = 0.01
"""Rounding of a parameter, in stds of the noise, above which the update of that parameter is not read."""


def hostile_copies(setting: AuditSetting) -> Verdict:
    """A verdict on how much equal records add up to under each of many hostile copies."""
    copies = {**_amplifying(setting), **_scaled(setting)}
    law = setting.law(LITTLE_NOISE)
    updates, unit = _updates(setting, list(copies.values()))
    energies, counts = [], []
    for update, copy in zip(updates, copies.values(), strict=True):
        received = np.concatenate([leaf.ravel() for leaf in copy.values()])
        readable = np.abs(np.spacing(received)) / unit < READABLE * law.std
        energies.append(float(np.sum((update[readable] / unit) ** 2)))
        counts.append(int(readable.sum()))
    found = sensitivity(np.asarray(energies), np.asarray(counts), setting.batch, law, list(copies))
    return Verdict(f"clipping under {len(copies)} hostile copies", [found])


def _updates(setting: AuditSetting, copies: list[NamedArrays]) -> tuple[np.ndarray, float]:
    """What devices that hold equal records send, one for each copy, and the move that one clip length makes."""
    scenario = audited(setting.scenario, setting.seed, LITTLE_NOISE)
    model, count, learning = setting.model, setting.batch, scenario.learning
    draw = np.random.default_rng(setting.seed)
    with double_precision():
        counts = np.full(scenario.cell.num_devices, count, np.int32)
        enforced = mode_of(scenario.privacy).enforcement(scenario, counts, 1)
        training = local_training(scenario, SCHEMES["proposed"], model, enforced.protection)
        shapes = jax.eval_shape(model.init, jax.random.key(0))
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(tree_of(copy, shapes) for copy in copies))
        inputs = jnp.asarray(np.repeat(draw.random((1, learning.layer_sizes[0])), count, axis=0), jnp.float32)
        shared = SharedInputs(run_key(setting.seed), jnp.asarray(0), inputs, jnp.zeros(count, jnp.int32))
        each = jnp.arange(len(copies))
        own = TrainingInputs(
            copy=stacked,
            own_gradient=None,
            held=HeldSamples(jnp.tile(jnp.arange(count), (len(copies), 1)), jnp.full(len(copies), count)),
            trained_count=jnp.full(len(copies), count),
            flipped=jnp.zeros(len(copies), bool),
            iterations=jnp.ones(len(copies), jnp.int64),
            index=each,
        )
        update = training_program(training)(shared, own).update
    flat = [np.asarray(leaf, np.float64).reshape(len(copies), -1) for leaf in jax.tree.leaves(update)]
    return np.concatenate(flat, axis=1), learning.learning_rate * setting.clip_norm / count


def _amplifying(setting: AuditSetting) -> dict[str, NamedArrays]:
    """Copies that sum a record's inputs, amplify the sum, and hide it behind a slope whose square underflows.

    For networks of dense layers: the layers before the last pass one value on, and the last has a bias alone.
    """
    blank = {name: np.zeros_like(leaf) for name, leaf in ordinary_copy(setting.model).items()}
    weights = [name for name, leaf in blank.items() if leaf.ndim == 2]
    if len(weights) < 2 or len(weights) * 2 != len(blank):
        return {}
    edge = float(np.sqrt(np.finfo(np.float32).max))
    chosen = [(gap, share * edge) for gap in FINE_GAPS for share in NEARLY_OVERFLOWING]
    chosen += [(gap, excess * setting.clip_norm * float(np.exp(gap))) for gap in WIDE_GAPS for excess in EXCESS]
    copies = {}
    for gap, wanted in chosen:
        copy, gain = {name: leaf.copy() for name, leaf in blank.items()}, min(wanted, 1e38)
        # The mean of the auditor's record is about one half.
        copy[weights[0]][:, 0] = 2.0 / copy[weights[0]].shape[0]
        if len(weights) == 2:
            copy[weights[0]][:, 0] *= gain
        for name in weights[1:-1]:
            copy[name][0, 0] = gain ** (1.0 / (len(weights) - 2))
        copy[weights[-1].replace("weight", "bias")][0] = gap
        copies[f"activation {gain:.1e}, gap {gap:g}"] = copy
    return copies


def _scaled(setting: AuditSetting) -> dict[str, NamedArrays]:
    """Copies whose leaves are larger or smaller than usual by factors at random."""
    draw, copies = np.random.default_rng(setting.seed + 1), {}
    for number in range(SCALED):
        widest = (1.0, 4.0, 12.0, 30.0)[number % 4]
        copies[f"leaves scaled at random, number {number + 1}"] = {
            name: leaf * np.float32(10.0 ** draw.uniform(-widest, widest))
            for name, leaf in ordinary_copy(setting.model, number).items()
        }
    return copies
