"""Classes that some devices alone hold, against counting and exhaustive search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairwave.data.partition import share_out
from fairwave.data.rare_classes import even_holdings
from fairwave.errors import ScenarioError
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.partition_laws import Rare
from tests.builders import WEATHER, weather_folder

LABELS = np.random.default_rng(0).integers(0, 10, 3_000)


def law(devices: tuple[int, ...] = (1, 4), classes: tuple[int, ...] = (3, 7), share: float = 0.5) -> Rare:
    return Rare(law="rare", devices=devices, classes=classes, share=share)


def test_named_devices_alone_hold_named_classes_and_all_hold_as_much():
    holdings = share_out(law(), LABELS, 8, seed=1)
    assert len(set(holdings.counts.tolist())) == 1
    held = [holdings.of(device) for device in range(8)]
    together = np.concatenate(held)
    assert len(set(together.tolist())) == together.size
    for device, samples in enumerate(held):
        rare = np.isin(LABELS[samples], [3, 7])
        assert rare.mean() == pytest.approx(0.5, abs=0.01) if device in (1, 4) else not rare.any()
        usual = np.bincount(LABELS[samples[~rare]], minlength=10)[[0, 1, 2, 4, 5, 6, 8, 9]]
        assert usual.min() > 0.4 * usual.mean()
    again, other = (share_out(law(), LABELS, 8, seed=seed).samples for seed in (1, 2))
    assert (again == holdings.samples).all() and not np.array_equal(other, holdings.samples)


def test_a_limit_on_samples_takes_of_all():
    few = share_out(law(share=0.3), LABELS, 8, seed=0, samples_per_device=100)
    assert few.counts.tolist() == [100] * 8
    assert 15 < np.isin(LABELS[few.of(4)], [3, 7]).sum() < 45


@pytest.mark.parametrize("share", [0.1, 0.5, 0.77, 1.0])
def test_nobody_can_hold_more(share):
    """Every holding and every number of rare samples in it, tried one by one."""
    for rare, common, devices, owners in itertools.product((1, 7, 20), (5, 13, 30), (3, 5), (1, 3)):
        possible = []
        for each in range(1, rare + common + 1):
            of_rare = max(n for n in range(rare + 1) if n * owners <= rare and n <= share * each + 1e-9)
            if (devices - owners) * each + owners * (each - of_rare) <= common:
                possible.append((each, of_rare))
        assert even_holdings(rare, common, devices, owners, share) == (possible[-1] if possible else (0, 0))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (law(devices=(8,)), "device 8 is to hold rare classes, and the cell has 8, numbered from 0"),
        (law(classes=(3, 10)), "no sample of the data set is of class 10"),
        (law(classes=tuple(range(10))), "gets none of the 3000 samples"),
    ],
)
def test_what_cannot_be_is_refused(chosen, said):
    with pytest.raises(ScenarioError, match=said):
        share_out(chosen, LABELS, 8, seed=0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{law='rare', devices=[1, 1], classes=[3]}", "devices has 1 twice; name each once"),
        ("{law='rare', devices=[], classes=[3]}", "data.partition.devices"),
        ("{law='rare', devices=[1], classes=[3], share=0}", "data.partition.share"),
    ],
)
def test_what_is_misspelt_is_refused(value, said):
    with pytest.raises(ScenarioError, match=said):
        load_scenario("small", [f"data.partition={value}"])


def test_numbers_have_no_classes(tmp_path):
    where = f"data.source={weather_folder(tmp_path / 'weather')}"
    with pytest.raises(ScenarioError, match="'rare' shares samples out by class"):
        load_scenario("small", [*WEATHER, where, "data.partition={law='rare', devices=[1], classes=[3]}"])
