"""What the access point does about devices that misbehave."""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from fairwave.extensions import AGGREGATORS, DEFENCES
from fairwave.scenario.group import Group
from fairwave.scenario.names import known, named
from fairwave.scenario.privacy_parameters import Below1
from fairwave.scenario.quantity import Limit, Positive, Share, one, whole
from fairwave.units import NUMBER


class Defences(Group):
    """This table says what the access point does about devices that misbehave."""

    use: tuple[Annotated[str, named(DEFENCES)], ...] = ()
    """These defences are in use. The command 'fairwave scenario defences' lists all of them."""
    aggregator: Annotated[str, named(AGGREGATORS), known(AGGREGATORS)] = "mean"
    """This aggregator turns the updates into one step, after all defences. 'mean' is the plain mean. The command
    'fairwave scenario aggregators' lists the robust ones."""
    attacker_share: Annotated[float, *one(Limit(NUMBER, 0.0, 0.5, low_allowed=True))] = 0.2
    """The aggregators trimmed_mean, krum, multi_krum and bulyan assume that at most this share of a round's updates
    comes from attackers."""
    bounding_ratio: Positive = 1.0
    """The aggregator norm_bounding shortens longer updates to this length, which is given in units of the median
    length."""
    bounding_length: Positive | None = None
    """The aggregator norm_bounding shortens longer updates to this length, which then replaces bounding_ratio."""
    bounding_noise: Annotated[float, *one(Limit(NUMBER, 0.0, low_allowed=True))] = 0.05
    """The aggregator norm_bounding adds noise of this length to the step, in units of its bound. No privacy is claimed
    for this noise."""
    reference_iterations: Annotated[int, *whole(2, 1_000_000)] = 100
    """The access point trains this many steps for fltrust and for the similarity 'training'. The number should be about
    what devices do."""
    shortest_update: Share = 0.01
    """The defence validation refuses updates that are shorter than this, in units of the median length."""
    longest_update: Annotated[float, *one(Limit(NUMBER, 1.0))] = 100.0
    """The defence validation refuses updates that are longer than this, in units of the median length."""
    clipping_ratio: Positive = 2.0
    """The defence norm_clipping shortens longer updates to this length, which is given in units of the median
    length."""
    watermark_threshold: Share = 0.08
    """The defence watermark takes an update for an echo if its cosine with the noise of a copy is at least this. The
    threshold is higher for a small model."""
    replay_ratio: Share = 0.1
    """The defence replay_check takes an update for a repetition if its distance from an earlier one is below this, in
    units of the median distance."""
    validation_samples: Annotated[int, *whole(1, 10_000_000)] = 500
    """The access point has this many test samples for held_out, fltrust, cffl and the similarity 'training'. Accuracy
    is measured on the other test samples."""
    false_alarm: Share = 0.01
    """With the similarity 'training', full work is taken for less with this probability, along one of two
    directions."""
    useful_share: Share = 0.1
    """The defence held_out refuses an update whose gain on those samples is below this, in units of the median gain."""
    reputation_memory: Below1 = 0.9
    """The defence reputation keeps this share of the last reputation in the next one."""
    reputation_threshold: Share = 0.35
    """The defence reputation removes a device for good when its reputation falls below this. Every device starts at
    1."""

    @model_validator(mode="after")
    def _none_twice(self) -> Defences:
        twice = next((name for name in self.use if self.use.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"use names '{twice}' twice; once is enough")
        return self
