"""Defences of the access point, in the order in which they act. A new one is one small file and one name here."""

from __future__ import annotations

from fairwave.defences.defence import Defence
from fairwave.defences.held_out import held_out
from fairwave.defences.length_credit import length_credit
from fairwave.defences.median_yardstick import median_yardstick
from fairwave.defences.noise_check import noise_check
from fairwave.defences.norm_clipping import norm_clipping
from fairwave.defences.projection import projection
from fairwave.defences.replay_check import replay_check
from fairwave.defences.reputation import reputation
from fairwave.defences.validation import validation
from fairwave.defences.watermark import watermark

ALL: dict[str, Defence] = {
    defence.name: defence
    for defence in (
        validation,
        watermark,
        replay_check,
        held_out,
        noise_check,
        length_credit,
        norm_clipping,
        projection,
        median_yardstick,
        reputation,
    )
}
