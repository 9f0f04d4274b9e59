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
    """What the access point does about devices that misbehave."""

    use: tuple[Annotated[str, named(DEFENCES)], ...] = ()
    """Defences in use; see 'fairwave scenario defences'."""
    aggregator: Annotated[str, named(AGGREGATORS), known(AGGREGATORS)] = "mean"
    """How updates become one step, after all defences: 'mean', or a robust one; see 'fairwave scenario aggregators'."""
    attacker_share: Annotated[float, *one(Limit(NUMBER, 0.0, 0.5, low_allowed=True))] = 0.2
    """trimmed_mean, krum, multi_krum, bulyan: largest share of a round's updates that may come from attackers."""
    bounding_ratio: Positive = 1.0
    """norm_bounding: length, over the median of all, to which longer updates are shortened."""
    bounding_length: Positive | None = None
    """norm_bounding: the same as a length, which then replaces the ratio."""
    bounding_noise: Annotated[float, *one(Limit(NUMBER, 0.0, low_allowed=True))] = 0.05
    """norm_bounding: length of the noise on the step, over that bound; no privacy is claimed for it."""
    reference_iterations: Annotated[int, *whole(2, 1_000_000)] = 100
    """fltrust, similarity 'training': training steps of the access point; about as many as devices do."""
    shortest_update: Share = 0.01
    """validation: length, over the median of all, below which an update is none."""
    longest_update: Annotated[float, *one(Limit(NUMBER, 1.0))] = 100.0
    """validation: length, over the median of all, above which an update is refused."""
    clipping_ratio: Positive = 2.0
    """norm_clipping: length, over the median of all, to which longer updates are shortened."""
    watermark_threshold: Share = 0.08
    """watermark: cosine with the noise of a copy from which an update is an echo; more in a small model."""
    replay_ratio: Share = 0.1
    """replay_check: distance from one of its last updates, over the median of all, below which it is that."""
    validation_samples: Annotated[int, *whole(1, 10_000_000)] = 500
    """held_out, fltrust, cffl, similarity 'training': test samples of the access point; accuracy is on the others."""
    false_alarm: Share = 0.01
    """similarity 'training': chance that full work is taken for less, along one of two directions."""
    useful_share: Share = 0.1
    """held_out: gain on those samples, over the median of all, below which an update is useless."""
    reputation_memory: Below1 = 0.9
    """reputation: share of the last reputation kept in the next."""
    reputation_threshold: Share = 0.35
    """reputation: value below which a device is removed for good; everybody starts at 1."""

    @model_validator(mode="after")
    def _none_twice(self) -> Defences:
        twice = next((name for name in self.use if self.use.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"use names '{twice}' twice; once is enough")
        return self
