from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairwave.data.partition import holdings_of, share_out
from fairwave.data.sources import load
from fairwave.errors import ScenarioError
from fairwave.runs.simulate import simulate
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.partition_laws import Dirichlet, FromFile, Iid, QuantitySkew, Shards, Users

LABELS = np.random.default_rng(0).integers(0, 10, 3_000)
LAWS = [
    Iid(law="iid"),
    Dirichlet(law="dirichlet", alpha=0.5),
    Shards(law="shards", per_device=2),
    QuantitySkew(law="quantity", alpha=2.0),
]


def entropy(labels: np.ndarray) -> float:
    share = np.bincount(labels, minlength=10) / labels.size
    return float(-(share[share > 0] * np.log(share[share > 0])).sum())


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.law)
def test_every_sample_has_one_holder(law):
    holdings = share_out(law, LABELS, 10, seed=1)
    held = np.concatenate([holdings.of(device) for device in range(10)])
    assert sorted(held.tolist()) == list(range(LABELS.size))
    again = share_out(law, LABELS, 10, seed=1)
    assert (again.samples == holdings.samples).all()
    assert (share_out(law, LABELS, 10, seed=2).counts.shape) == (10,)


def test_iid_is_even_and_mixed():
    holdings = share_out(LAWS[0], LABELS, 10, seed=1)
    assert set(holdings.counts.tolist()) == {300}
    assert min(entropy(LABELS[holdings.of(k)]) for k in range(10)) > 2.2


def test_skew_is_skewed():
    few = share_out(Dirichlet(law="dirichlet", alpha=0.1), LABELS, 10, seed=1)
    assert np.mean([entropy(LABELS[few.of(k)]) for k in range(10)]) < 1.5
    shards = share_out(LAWS[2], LABELS, 10, seed=1)
    assert max(len(np.unique(LABELS[shards.of(k)])) for k in range(10)) <= 4
    sizes = share_out(LAWS[3], LABELS, 10, seed=1).counts
    assert sizes.max() > 2 * sizes.min()


def test_a_limit_on_samples():
    assert share_out(LAWS[0], LABELS, 10, seed=1, samples_per_device=7).counts.tolist() == [7] * 10


def test_from_file(tmp_path: Path):
    owner = np.arange(LABELS.size) % 4 - 1
    path = tmp_path / "owner.csv"
    path.write_text("device\n" + "\n".join(map(str, owner)), "utf-8")
    holdings = share_out(FromFile(law="file", file=path), LABELS, 3, seed=0)
    assert (holdings.of(1) == np.flatnonzero(owner == 1)).all()
    with pytest.raises(ScenarioError, match=r"outside -1 \.\. 1"):
        share_out(FromFile(law="file", file=path), LABELS, 2, seed=0)
    with pytest.raises(ScenarioError, match="3000 rows for 2999 samples"):
        share_out(FromFile(law="file", file=path), LABELS[1:], 3, seed=0)


def test_a_device_without_data_is_refused():
    with pytest.raises(ScenarioError, match="gets none of the 5 samples"):
        share_out(LAWS[0], LABELS[:5], 10, seed=0)


def test_every_seed_has_its_own_split():
    """Seeds go up to 2^53; taken modulo 2^32, some would share theirs."""
    splits = [share_out(Iid(law="iid"), np.zeros(50, np.int32), 2, seed).samples.tolist() for seed in (0, 2**32, 2**53)]
    assert splits[0] != splits[1] != splits[2] != splits[0]


BY_USER = Users(law="users")


def test_every_person_is_a_device():
    users = np.random.default_rng(1).choice([3, 8, 41], LABELS.size, p=[0.6, 0.3, 0.1])
    holdings = share_out(BY_USER, LABELS, 3, seed=0, users=users)
    for device, person in enumerate((3, 8, 41)):
        assert sorted(holdings.of(device).tolist()) == np.flatnonzero(users == person).tolist()
    few = share_out(BY_USER, LABELS, 3, seed=0, users=users, samples_per_device=50)
    assert few.counts.tolist() == [50] * 3
    assert min(entropy(LABELS[few.of(k)]) for k in range(3)) > 1.8, "a limit takes some of all, not the first"


@pytest.mark.parametrize(
    ("users", "said"),
    [
        (None, "choose another law"),
        (np.arange(LABELS.size) % 4, "4 in all, but cell.num_devices is 3; set cell.num_devices=4"),
    ],
)
def test_people_that_do_not_fit(users, said):
    with pytest.raises(ScenarioError, match=said):
        share_out(BY_USER, LABELS, 3, seed=0, users=users)


def test_a_scenario_asks_its_data_set_whose_the_samples_are(tmp_path: Path):
    draw, path = np.random.default_rng(0), tmp_path / "set.npz"
    labels, users = draw.integers(0, 4, 60), draw.integers(5, 8, 60)
    inputs = draw.integers(0, 256, (60, 6), np.uint8)
    held = {"train_images": inputs, "train_labels": labels, "test_images": inputs, "test_labels": labels}
    np.savez(path, **held, train_users=users)
    changes = [f"data.source={path}", 'data.partition={law="users"}', "data.samples_per_device=unset"]
    scenario = load_scenario("small", [*changes, "cell.num_devices=3", "learning.layer_sizes=[6, 4]"])
    assert holdings_of(scenario, labels, users).counts.tolist() == [(users == person).sum() for person in (5, 6, 7)]
    results = simulate(scenario, ["max_power"], rounds=2).results
    assert results.sizes["device"] == 3 and np.isfinite(results["loss"]).all()
    as_object = simulate(scenario, ["max_power"], rounds=2, data=load(str(path))).results
    np.testing.assert_array_equal(as_object["loss"], results["loss"])
