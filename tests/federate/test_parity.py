"""A federation in one process is the simulator, spread over parties that share nothing but messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairwave.engine.round_record import Arrays
from fairwave.engine.state import ServerState
from fairwave.federate import client, server_round
from fairwave.federate.server_round import Answers
from fairwave.runs.order import Order
from tests.federate.parties import close, federated, model_of_round, simulated, tiny

UNKNOWN = {"global_loss", "membership_auc", "distance_now_m"}
"""What nobody in a federation knows."""
SCENARIOS = {
    "paper": (),
    "one exchange": ("learning.gradient_exchange=false",),
    "8 bits": ("learning.update_bits=8",),
    "8 bits, one exchange": ("learning.update_bits=8", "learning.gradient_exchange=false"),
    "a bad channel": ("cell.participants=2", "cell.straggler_probability=0.3", "radio.channel_error_std=0.3"),
    "batteries": ("compute.battery_capacity_j=0.6",),
    "changing data": (
        'data.partition={law="dirichlet", alpha=0.5}',
        "data.samples_per_device=40",
        "data.refreshed_samples=3",
    ),
    "empty batteries": ("compute.battery_capacity_j=[0.15, 5, 5]", "cell.participants=1", "run.num_rounds=4"),
    "time for a thousand iterations, data for 200": ("compute.bits_per_iteration=100e3",),
    "moving": ('cell.mobility={law="radial", max_speed_m_per_s=20, near_m=10, far_m=300}', "radio.doppler_hz=1"),
}


OF_OWN_MODELS = frozenset({"received_accuracy"})
"""What nobody but a device knows where it uses a model that never leaves it."""
SLOW = {"a bad channel", "batteries", "empty batteries", "changing data", "moving"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in SCENARIOS])
def test_every_round_is_the_simulators(name: str, tmp_path: Path) -> None:
    order = tiny(*SCENARIOS[name])
    stored = federated(order, tmp_path / "run").records
    _agree(tmp_path / "run", stored, order)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["max_power", "fedadam", "fedprox", "fednova", "q_fedavg", "ditto", "mr_mtl"])
def test_other_schemes_agree_too(scheme: str, tmp_path: Path) -> None:
    order = tiny(scheme=scheme, rounds=2)
    stored = federated(order, tmp_path / "run").records
    _agree(tmp_path / "run", stored, order, OF_OWN_MODELS if scheme in ("ditto", "mr_mtl") else frozenset())


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["max_power", "fair_energy_only"])
def test_noise_at_a_trusted_access_point_agrees(scheme: str, tmp_path: Path) -> None:
    """Budgets are of rounds whose update was used, and nobody learns from a score."""
    mode = ("privacy.mode=device", "defences.use=[]", "cell.straggler_probability=0.4", "privacy.max_epsilon=10")
    order = tiny(*mode, "privacy.clip_norm=0.01", preset="fair-mlp", scheme=scheme, rounds=6)
    stored = federated(order, tmp_path / "run").records
    _agree(tmp_path / "run", stored, order)


@pytest.mark.slow
def test_private_training_and_defences_agree(tmp_path: Path) -> None:
    order = tiny("privacy.max_epsilon=20", preset="fair-mlp", rounds=2)
    store = federated(order, tmp_path / "run")
    _agree(tmp_path / "run", store.records, order, frozenset({"loss", "received_loss", "update_norm"}))
    assert np.isnan(store.records[0]["loss"]).all()  # losses are computed from records that a proof protects


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "first"), [("mr_mtl", "random"), ("mr_mtl", "zero"), ("fedprox", "random")])
def test_private_training_with_a_pull_agrees(scheme: str, first: str, tmp_path: Path) -> None:
    """Devices are pulled towards their copies; those of mr_mtl carry their own models from round to round."""
    chosen = (f"learning.first_model={first}", "defences.use=[]", "privacy.max_epsilon=20")
    order = tiny(*chosen, f"peers.{scheme}_weight=0.5", preset="fair-mlp", scheme=scheme, rounds=3)
    store = federated(order, tmp_path / "run")
    own = OF_OWN_MODELS if scheme == "mr_mtl" else frozenset()
    unreported = own | {"loss", "received_loss", "update_norm"}
    _agree(tmp_path / "run", store.records, order, unreported)


@pytest.mark.slow
def test_features_momentum_and_a_decaying_rate_agree(tmp_path: Path) -> None:
    """Devices compute their own features; the preset 'fair' also sends 8 bits.

    Features computed by one device alone differ in their last bit from those of all, which turns the rounding of a few
    values to 8 bits the other way.
    """
    features = ("learning.layer_sizes=[3969, 10]", "compute.bits_per_iteration=4e6", "privacy.max_epsilon=unset")
    training = ("learning.optimizer=momentum", "learning.rate_decay=0.8", "learning.learning_rate=2")
    order = tiny(*features, *training, preset="fair", rounds=3)
    store = federated(order, tmp_path / "run")
    _agree(tmp_path / "run", store.records, order, frozenset({"loss", "received_loss", "update_norm"}), turned=10)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["provable", "device"])
def test_8_bits_agree_where_something_is_proved(mode: str, tmp_path: Path) -> None:
    """With every defence of 'fair' on noised updates, and clipped at the access point after rounding."""
    chosen = (f"privacy.mode={mode}", "learning.update_bits=8", "privacy.max_epsilon=20")
    more = ("defences.use=[]", "privacy.clip_norm=0.01") if mode == "device" else ()
    scheme = "max_power" if mode == "device" else "proposed"
    order = tiny(*chosen, *more, preset="fair-mlp", scheme=scheme, rounds=3)
    held = federated(order, tmp_path / "run")
    _agree(tmp_path / "run", held.records, order, frozenset({"loss", "received_loss", "update_norm"}))
    if mode == "device":  # on the ledger as without rounding: clip length over the number of updates
        models = [event for event in held.releases if event.content == "model"]
        assert [event.proven_sensitivity for event in models] == pytest.approx([0.01 / 3] * len(models))


@pytest.mark.slow
def test_a_federation_that_scores_wrongly_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: an access point that mixes devices up does not agree with the simulator."""
    honest = server_round._stacked

    def mixed_up(server: ServerState, answers: Answers, chosen: np.ndarray, bits: int) -> object:
        shifted = {(device + 1) % 3: answer for device, answer in answers.items()}
        return honest(server, shifted, chosen, bits)

    monkeypatch.setattr(server_round, "_stacked", mixed_up)
    order = tiny()
    stored = federated(order, tmp_path / "run").records
    with pytest.raises(AssertionError):
        _agree(tmp_path / "run", stored, order)


def test_a_device_that_forgets_its_deviation_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_fit_effort", lambda strategy, effort, *rest, **more: effort)
    order = tiny()
    stored = federated(order, tmp_path / "run").records
    with pytest.raises(AssertionError):
        _agree(tmp_path / "run", stored, order)


def _agree(
    folder: Path, stored: list[Arrays], order: Order, unreported: frozenset[str] = frozenset(), turned: int = 0
) -> None:
    """Models, and all that is recorded; so many values of a model may be rounded the other way, by one step."""
    expected = simulated(order)
    assert len(stored) == len(expected)
    track = next(order.tracks())
    for number, (model, record) in enumerate(expected, start=1):
        tolerance = 0.0 if order.scenario.learning.update_bits == 8 else 1e-6
        held = model_of_round(folder, number, track)
        differ = sum(np.count_nonzero(held[name] != model[name]) for name in held) if turned else 0
        assert close(held, model, 0.1 if differ else tolerance) and differ <= turned
        for name in record.keys() - UNKNOWN - unreported:
            federated_value = np.asarray(stored[number - 1][name], float)
            near = 1e-2 if differ else 1e-6
            assert np.allclose(federated_value, record[name], rtol=near, atol=near, equal_nan=True), (number, name)
