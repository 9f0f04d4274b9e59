"""Schemes under comparison. A new scheme is one small file and one name here."""

from __future__ import annotations

from fairwave.schemes.afl import afl
from fairwave.schemes.amplifier_cap import amplifier_cap
from fairwave.schemes.cffl import cffl
from fairwave.schemes.cgsv import cgsv
from fairwave.schemes.ditto import ditto
from fairwave.schemes.equal_energy import equal_energy
from fairwave.schemes.fair_energy_only import fair_energy_only
from fairwave.schemes.fair_noise_only import fair_noise_only
from fairwave.schemes.fedl import fedl
from fairwave.schemes.iafl import iafl
from fairwave.schemes.least_energy import least_energy
from fairwave.schemes.max_power import max_power
from fairwave.schemes.no_privacy import no_privacy
from fairwave.schemes.priced import priced
from fairwave.schemes.proposed import proposed
from fairwave.schemes.q_fedavg import q_fedavg
from fairwave.schemes.rffl import rffl
from fairwave.schemes.scheme import Scheme
from fairwave.schemes.term import term

ALL: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        proposed,
        max_power,
        amplifier_cap,
        priced,
        equal_energy,
        least_energy,
        no_privacy,
        fair_noise_only,
        fair_energy_only,
        q_fedavg,
        afl,
        term,
        ditto,
        cgsv,
        rffl,
        cffl,
        iafl,
        fedl,
    )
}
