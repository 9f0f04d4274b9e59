"""Privacy modes: what each refuses, charges, puts on the ledger and says."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import fairwave
from fairwave.engine.round_record import (
    BACKDOOR_SUCCESS,
    FROM_PLAN,
    OF_FEDERATED_DEVICES,
    OF_FEDERATED_ROUNDS,
    OF_LATE_UPDATES,
    OF_MOVING_DEVICES,
    PER_DEVICE,
    PER_ROUND,
    TEST_RMSE,
)
from fairwave.errors import ArgumentError, ScenarioError
from fairwave.extensions import ACCOUNTANTS, PRIVACY_MODES
from fairwave.privacy.accountants import Adjacency
from fairwave.privacy.disclosure import RESULTS
from fairwave.privacy.ledger import RoundMessages
from fairwave.privacy.modes.mode import mode_of
from fairwave.privacy.spending import Account
from fairwave.runs.order import Order

MODES = PRIVACY_MODES.builtin_names()
PROVING = ["privacy.mode=device", "defences.use=[]", "privacy.max_epsilon=unset"]


def scenario_of(name: str) -> fairwave.Scenario:
    return fairwave.load_scenario(
        *{"paper": ("paper",), "provable": ("fair-mlp",), "device": ("fair-mlp", PROVING)}[name]
    )


def messages() -> RoundMessages:
    some, all_four = np.array([0, 2]), np.arange(4)
    return RoundMessages(
        invited=all_four,
        sent=some,
        delivered=np.array([2]),
        served=all_four,
        copy_std=np.full(4, 0.1),
        update_std=0.05,
        steps=np.array([3, 0, 5, 0]),
        exchanged_gradients=False,
        reported_losses=True,
        model_std=0.2,
        model_sensitivity=0.1,
    )


@pytest.mark.parametrize("name", MODES)
def test_a_mode_is_consistent_with_what_it_claims(name: str) -> None:
    """Whoever proves nothing writes no proven sensitivity; whoever proves says about what, and against whom."""
    scenario = scenario_of(name)
    mode = mode_of(scenario.privacy)
    assert mode.name == name and list(mode.obstacles(scenario)) == []
    enforced = mode.enforcement(scenario, np.full(10, 6_000), 109_386)
    events = mode.events(enforced, messages())
    assert any(event.proven_sensitivity is not None for event in events) == mode.proves
    assert (enforced.protection is not None) == mode.counts_steps
    claims = " ".join(mode.claims(scenario))
    assert ("Protected:" in claims) == mode.proves and ("Not covered:" in claims) == mode.proves
    spent = mode.charge(jnp.array([7, 0]), jnp.array([True, False]))
    assert np.asarray(spent).astype(int).tolist() == ([7, 0] if mode.counts_steps else [1, 0])


@pytest.mark.parametrize(
    ("name", "access_point", "words"),
    [
        ("paper", None, "nothing is proved against it or anybody"),
        ("provable", "malicious", "whoever supplies the code is trusted"),
        ("device", "trusted", "a malicious one could also omit the noise"),
    ],
)
def test_every_mode_says_what_the_access_point_may_be(name: str, access_point: str | None, words: str) -> None:
    scenario = scenario_of(name)
    mode = mode_of(scenario.privacy)
    assert mode.access_point == access_point and mode.trusts_access_point == (access_point == "trusted")
    assert words in mode.adversary and mode.adversary in mode.claims(scenario)


def test_every_stored_field_is_classified() -> None:
    """A new field of a record, or of a federation's, has to say what it is computed from."""
    kept = {*FROM_PLAN, *PER_DEVICE, *PER_ROUND, *OF_MOVING_DEVICES, *OF_FEDERATED_DEVICES, *OF_FEDERATED_ROUNDS}
    derived, laid_out = {"outage", "findings"}, {"distance_m", "path_loss_db", "samples"}
    assert kept | {*OF_LATE_UPDATES, TEST_RMSE, BACKDOOR_SUCCESS} | derived | laid_out == set(RESULTS)


def test_what_is_not_private_follows_from_the_mode() -> None:
    paper, provable, device = (PRIVACY_MODES[name].not_private() for name in ("paper", "provable", "device"))
    always = {"loss", "received_loss", "global_loss", "membership_auc", "samples", "wall_time_s", "checkpoint"}
    assert always <= set(provable) < set(device) < set(paper)
    assert set(device) - set(provable) == {"update_norm", "findings"}
    assert {"deviation", "noise_std", "test_accuracy"} <= set(paper) - set(device) and "distance_m" not in paper


def test_private_steps_are_charged_to_the_devices_that_made_them() -> None:
    mode, scenario = PRIVACY_MODES["provable"], scenario_of("provable")
    (update, model, deviation) = mode.events(mode.enforcement(scenario, np.full(4, 600), 1), messages())
    assert update.devices.tolist() == [0, 2] and update.steps.tolist() == [3, 5]
    assert update.proven_sensitivity == 1.0 and (update.noise_std == 1.3).all()
    assert {model.basis, deviation.basis} == {"messages"}


def test_names_of_modes_and_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ScenarioError, match="'provble' is not a choice; expected 'paper', 'provable' or 'device'"):
        fairwave.load_scenario("fair-mlp", ["privacy.mode=provble"])
    with pytest.raises(ScenarioError, match="'no_privacy' trains without noise"):
        Order.checked(fairwave.load_scenario("fair-mlp"), ["no_privacy"])
    with pytest.raises(ScenarioError, match="choose among max_power"):
        Order.checked(scenario_of("device"), ["proposed"])
    with pytest.raises(ScenarioError, match=r"late_rounds 2 mixes updates of several rounds.*; set it to 0"):
        fairwave.load_scenario("fair-mlp", [*PROVING, "learning.late_rounds=2"])
    with pytest.raises(ArgumentError, match="has no proof for adjacency REPLACE_ONE"):
        ACCOUNTANTS["tight"](Adjacency.REPLACE_ONE)


@pytest.mark.parametrize("name", ACCOUNTANTS.builtin_names())
def test_accountants_compose(name: str) -> None:
    """Composing in parts is composing at once; more releases cost more; nothing costs nothing."""
    parts, whole = ACCOUNTANTS[name](), ACCOUNTANTS[name]()
    for _ in range(3):
        parts.compose({(1.5, 0.1): 20})
    whole.compose({(1.5, 0.1): 60})
    assert parts.epsilon(1e-5) == whole.epsilon(1e-5) > ACCOUNTANTS[name]().compose({(1.5, 0.1): 30}).epsilon(1e-5)
    assert ACCOUNTANTS[name]().epsilon(1e-5) == pytest.approx(0.0, abs=1e-3)


def test_the_tight_accountant_is_never_above_the_renyi_bound() -> None:
    account = Account(messages=1, releases={(1.3, 0.02): 500}, lost_delta=0.0, unproven=())
    assert account.epsilon(1e-5) < account.epsilon(1e-5, "renyi")
    assert dataclasses.replace(account, unproven=("updates",)).epsilon(1e-5) == np.inf


@pytest.mark.parametrize(
    ("mode", "overrides", "why"),
    [
        ("provable", (), "post-processing, which costs nothing"),
        ("device", ("defences.use=[]",), "The access point clips what it has received"),
    ],
)
def test_modes_that_prove_say_why_8_bits_change_nothing(mode: str, overrides: tuple[str, ...], why: str) -> None:
    said = {}
    for bits in (8, 32):
        scenario = fairwave.load_scenario(
            "fair-mlp", [f"privacy.mode={mode}", *overrides, f"learning.update_bits={bits}"]
        )
        said[bits] = " ".join(mode_of(scenario.privacy).claims(scenario))
    assert why in said[8]
    assert "8 bits" not in said[32]
