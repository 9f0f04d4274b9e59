"""Settings of the schemes by others that are compared with the paper's; defaults as in their authors' code.

`fedprox_weight`, `feddyn_weight` and `adaptive_rate` are ours: their authors tune them for every data set.
"""

from __future__ import annotations

from typing import Annotated

from fairwave.scenario.group import Group
from fairwave.scenario.privacy_parameters import Below1
from fairwave.scenario.quantity import Limit, NonNegative, Positive, Share, one, whole
from fairwave.units import NUMBER


class Peers(Group):
    """Settings of the schemes by others."""

    q_fedavg_power: NonNegative = 1.0
    """q_fedavg: power q of the losses; 0 is the plain mean, more is fairer."""
    afl_rate: Positive = 0.1
    """afl: step of the weights towards devices with a large loss."""
    term_tilt: NonNegative = 1.0
    """term: tilt t; 0 is the plain mean, more looks at the worst devices."""
    ditto_weight: NonNegative = 1.0
    """ditto: pull lambda of each device's own model towards the shared one."""
    mr_mtl_weight: NonNegative = 0.01
    """mr_mtl: pull lambda of each device's own model towards its copy; times learning.learning_rate it is at most 1."""
    fedprox_weight: NonNegative = 0.1
    """fedprox: pull mu of training back towards the copy; times learning.learning_rate it is at most 1."""
    feddyn_weight: Positive = 0.01
    """feddyn: pull alpha of training back towards the copy, and weight of updates in the devices' linear terms."""
    effective_steps: Positive | None = None
    """fednova, scaffold: local steps to which updates are scaled. Default: the mean of utility.required_iterations."""
    server_rate: Positive = 1.0
    """fedavgm: rate of the access point's step."""
    server_momentum: Below1 = 0.9
    """fedavgm, fedadam, fedyogi: share beta1 of the last direction kept in the next."""
    adaptive_rate: Positive = 0.01
    """fedadam, fedyogi, fedadagrad: rate of the access point's step, about the change of a value in a round."""
    second_moment_decay: Below1 = 0.99
    """fedadam, fedyogi: share beta2 of the last second moment kept in the next."""
    adaptive_tau: Annotated[float, *one(Limit(NUMBER, 1e-9, low_allowed=True))] = 1e-3
    """fedadam, fedyogi, fedadagrad: tau; mean updates far below it are hardly scaled. Second moments begin at tau^2."""
    update_length: Positive = 0.5
    """cgsv, rffl: length Gamma to which updates are scaled (cgsv) or clipped (rffl)."""
    reputation_memory: Below1 = 0.95
    """cgsv, rffl: share alpha of the last reputation kept in the next."""
    altruism: Positive = 1.0
    """cgsv: beta; the larger, the more alike are the rewards."""
    removal_share: Share = 1.0 / 3.0
    """rffl, cffl: part of an even share of reputation below which a device is removed."""
    rffl_patience: Annotated[int, *whole(0, 1_000_000)] = 10
    """rffl: rounds before anybody is removed."""
    cffl_punishment: Positive = 5.0
    """cffl: alpha; the larger, the further apart are the credits."""
    iafl_equality: Share = 0.0
    """iafl: kappa; 0 rewards by data held, 1 gives everybody all."""
    iafl_recovery: Share = 0.0
    """iafl: chance in a round that a device is given the access point's own model."""
