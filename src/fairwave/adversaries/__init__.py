"""Misbehaviours. A new one is one small file and one name here."""

from __future__ import annotations

from fairwave.adversaries.behaviour import Behaviour
from fairwave.adversaries.coalition import coalition
from fairwave.adversaries.disguised import disguised
from fairwave.adversaries.echo_model import echo_model
from fairwave.adversaries.echo_update import echo_update
from fairwave.adversaries.fewer_iterations import fewer_iterations
from fairwave.adversaries.label_flip import label_flip
from fairwave.adversaries.lazy import lazy
from fairwave.adversaries.misreport import misreport
from fairwave.adversaries.noise_update import noise_update
from fairwave.adversaries.part_of_data import part_of_data
from fairwave.adversaries.quantised import quantised
from fairwave.adversaries.replay import replay
from fairwave.adversaries.scaled import scaled
from fairwave.adversaries.sign_flip import sign_flip
from fairwave.adversaries.sparsified import sparsified
from fairwave.adversaries.zero_update import zero_update

ALL: dict[str, Behaviour] = {
    behaviour.name: behaviour
    for behaviour in (
        fewer_iterations,
        part_of_data,
        replay,
        quantised,
        sparsified,
        zero_update,
        noise_update,
        echo_model,
        echo_update,
        disguised,
        label_flip,
        sign_flip,
        scaled,
        misreport,
        lazy,
        coalition,
    )
}
