"""Corrections of local training for how much devices' data differ: what devices and the access point carry for them.

Devices' vectors are pytrees, the access point's are flat; each equation serves one device or the access point.
"""

from __future__ import annotations

import jax

from fairwave.learning.model import Tree
from fairwave.types import Params, Scalar


def control_term(own: Tree, mean: Tree) -> Tree:
    """What SCAFFOLD subtracts from every local gradient: the device's control variate less the mean of all.

    Karimireddy, Kale, Mohri, Reddi, Stich, Suresh, "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
    ICML 2020, Algorithm 1.
    """
    return jax.tree.map(lambda one, all_of_them: one - all_of_them, own, mean)


def next_control(own: Tree, mean: Tree, update: Tree, reach: Scalar) -> Tree:
    """A device's next control variate, by option II: the mean of its gradients along its way.

    `reach` is how far a gradient of one in every step would have moved the model: learning rate times steps.
    """
    return jax.tree.map(
        lambda one, all_of_them, sent: one - all_of_them - (sent / reach).astype(sent.dtype), own, mean, update
    )


def next_mean_control(control: Params, mean_update: Params, share: Scalar, reach: Scalar | float) -> Params:
    """The access point's next control variate, if devices whose updates have this mean are `share` of all devices.

    A device's control variate changes by -control - update / reach, which the access point works out for itself.
    """
    return control + share * (-mean_update / reach - control)


def next_dynamic_term(own: Tree, update: Tree, weight: float) -> Tree:
    """The next linear term of a device under FedDyn, which it subtracts from every local gradient.

    Acar, Zhao, Navarro, Mattina, Whatmough, Saligrama, "Federated Learning Based on Dynamic Regularization", ICLR 2021,
    Algorithm 1: where the local problem is solved exactly, it is the gradient of the device's loss there.
    """
    return jax.tree.map(lambda one, sent: one - weight * sent, own, update)


def dynamic_step(mean_update: Params, state: Params, share: Scalar, weight: float) -> tuple[Params, Params]:
    """Step of the access point's model under FedDyn, and its next state h, from the mean of `share` of all devices.

    The state adds up changes: h <- h - weight * share * mean, and the model is the mean of models less h / weight.
    """
    after = state - weight * share * mean_update
    return mean_update - after / weight, after
