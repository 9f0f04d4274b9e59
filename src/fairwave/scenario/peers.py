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
    """This table has the settings of schemes from other papers."""

    q_fedavg_power: NonNegative = 1.0
    """The scheme q_fedavg weights devices by their loss to this power (q). 0 is the plain mean, and larger values are
    fairer."""
    afl_rate: Positive = 0.1
    """The scheme afl moves its weights by this step towards devices with a large loss."""
    term_tilt: NonNegative = 1.0
    """The scheme term has this tilt (t). 0 is the plain mean, and larger values favour the devices with the largest
    losses."""
    ditto_weight: NonNegative = 1.0
    """The scheme ditto pulls each device's own model towards the shared one with this weight (lambda)."""
    mr_mtl_weight: NonNegative = 0.01
    """The scheme mr_mtl pulls each device's own model towards its copy with this weight (lambda). Times
    learning.learning_rate it is at most 1."""
    fedprox_weight: NonNegative = 0.1
    """The scheme fedprox pulls training back towards the copy with this weight (mu). Times learning.learning_rate it is
    at most 1."""
    feddyn_weight: Positive = 0.01
    """The scheme feddyn pulls training back towards the copy with this weight (alpha), which is also the weight of
    updates in the devices' linear terms."""
    effective_steps: Positive | None = None
    """The schemes fednova and scaffold scale updates to this many local steps. Default: the mean of
    utility.required_iterations."""
    server_rate: Positive = 1.0
    """The scheme fedavgm scales the access point's step by this rate."""
    server_momentum: Below1 = 0.9
    """The schemes fedavgm, fedadam and fedyogi keep this share of the last direction in the next (beta1)."""
    adaptive_rate: Positive = 0.01
    """The schemes fedadam, fedyogi and fedadagrad scale the access point's step by this rate, which is about the change
    of a value in a round."""
    second_moment_decay: Below1 = 0.99
    """The schemes fedadam and fedyogi keep this share of the last second moment in the next (beta2)."""
    adaptive_tau: Annotated[float, *one(Limit(NUMBER, 1e-9, low_allowed=True))] = 1e-3
    """The schemes fedadam, fedyogi and fedadagrad scale mean updates only a little if they are far below this value
    (tau). Second moments start at tau^2."""
    update_length: Positive = 0.5
    """The scheme cgsv scales updates to this length, and rffl clips them to it (Gamma)."""
    reputation_memory: Below1 = 0.95
    """The schemes cgsv and rffl keep this share of the last reputation in the next (alpha)."""
    altruism: Positive = 1.0
    """The scheme cgsv makes rewards more alike with a larger value (beta)."""
    removal_share: Share = 1.0 / 3.0
    """The schemes rffl and cffl remove a device whose reputation falls below this part of an equal share."""
    rffl_patience: Annotated[int, *whole(0, 1_000_000)] = 10
    """The scheme rffl removes no device before this many rounds have passed."""
    cffl_punishment: Positive = 5.0
    """The scheme cffl spreads credits further apart with a larger value (alpha)."""
    iafl_equality: Share = 0.0
    """The scheme iafl rewards devices by the data they hold with 0, and gives every device everything with 1
    (kappa)."""
    iafl_recovery: Share = 0.0
    """The scheme iafl gives a device the access point's own model with this probability in a round."""
