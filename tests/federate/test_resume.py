"""An access point that is interrupted goes on where it was, and what has left a device twice is counted twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.errors import FederationError, StoreError
from fairwave.federate import server_run
from fairwave.federate.agreement import Agreement
from fairwave.federate.flower_records import ARRAYS
from fairwave.federate.server_run import ServerRun
from fairwave.federate.settings import Settings
from fairwave.runs.folder import SECRET
from fairwave.runs.order import Order
from fairwave.runs.session import resume, run
from fairwave.wireless.energy import seconds_per_bit
from tests.federate.parties import REPEATABLE, close, federated, model_of_round, tiny

HARDENED = Settings(telemetry=True, energy="model", keep_models="all", quorum=0.3, wait_s=1.0)
PRIVATE = ("privacy.noise_source=hardened", "privacy.max_epsilon=unset")


class Crash(BaseException):
    """As sudden as a power cut: nothing catches it."""


class Wire:
    """Remembers every update, and cuts the power when round 2 has so many answers."""

    def __init__(self, cut_after: int = -1, phase: str = "update") -> None:
        self._cut_after, self._phase, self._met = cut_after, f"train.{phase}", 0
        self.sent: list[tuple[int, str, int, bytes]] = []

    def __call__(self, honest: ClientApp, message: Message, context: Context) -> Message:
        reply, kind = honest(message, context), message.metadata.message_type
        if kind.startswith("train") and message.metadata.group_id == "1":
            arrays = reply.content[ARRAYS]
            content = b"".join(array.numpy().tobytes() for array in arrays.values())
            self.sent.append((1, kind, int(context.node_config["partition-id"]), content))
            self._met += kind == self._phase
            if self._met == self._cut_after:
                raise Crash
        return reply


@pytest.mark.parametrize(
    ("phase", "after"), [("gradient", 2), pytest.param("update", 1, marks=pytest.mark.slow), ("update", 3)]
)
def test_an_interrupted_round_is_repeated_to_the_same_result(phase: str, after: int, tmp_path: Path) -> None:
    with pytest.raises(Crash):
        federated(tiny(), tmp_path / "run", meddle=Wire(after, phase))
    assert list((tmp_path / "run").glob("asked-*.json"))
    store, whole = federated(tiny(), tmp_path / "run"), federated(tiny(), tmp_path / "whole")
    for number in (1, 2, 3):
        there, expected = (model_of_round(tmp_path / name, number) for name in ("run", "whole"))
        assert close(there, expected, tolerance=0.0)
    for mine, theirs in zip(store.records, whole.records, strict=True):
        for name in ("deviation", "local_iterations", "energy_j", "delivered"):
            assert np.array_equal(mine[name], theirs[name]), name
    assert not list((tmp_path / "run").glob("asked-*.json"))


@pytest.mark.slow
def test_a_crash_between_aggregation_and_storing_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = federated(tiny(), tmp_path / "whole")
    honest = ServerRun.append

    def cut(self: ServerRun, track: object, number: int, *rest: object, **more: object) -> None:
        if number == 1:
            raise Crash
        honest(self, track, number, *rest, **more)

    with monkeypatch.context() as patched, pytest.raises(Crash):
        patched.setattr(ServerRun, "append", cut)
        federated(tiny(), tmp_path / "run")
    federated(tiny(), tmp_path / "run")
    assert close(model_of_round(tmp_path / "run", 3), model_of_round(tmp_path / "whole", 3), tolerance=0.0)
    assert len(whole.records) == 3


@pytest.mark.slow
def test_a_device_asked_the_same_thing_again_sends_the_same_bits(tmp_path: Path) -> None:
    """With noise that nobody can repeat: a second draw would be a second release."""
    order = tiny(*PRIVATE, preset="fair-mlp", rounds=2)
    first, second = Wire(cut_after=3), Wire()
    with pytest.raises(Crash):
        federated(order, tmp_path / "run", HARDENED, first)
    store = federated(order, tmp_path / "run", HARDENED, second)
    assert first.sent == second.sent
    planned = [record["local_iterations"] for record in store.records]
    assert [event.steps.tolist() for event in store.of("update")] == [each.tolist() for each in planned]


@pytest.mark.slow
def test_another_question_in_the_same_round_is_a_second_release(tmp_path: Path) -> None:
    """The crash leaves a device out of the repeated round, so that the mean gradient, and with it training, differs."""
    order = tiny(
        *PRIVATE, "learning.gradient_exchange=true", "privacy.exchange_noise_multiplier=5", preset="fair-mlp", rounds=2
    )
    with pytest.raises(Crash):
        federated(order, tmp_path / "run", HARDENED, Wire(cut_after=3))

    def one_fails(honest: ClientApp, message: Message, context: Context) -> Message:
        if message.metadata.group_id == "1" and int(context.node_config["partition-id"]) == 2:
            raise RuntimeError
        return honest(message, context)

    store = federated(order, tmp_path / "run", HARDENED, one_fails)
    first, second = store.of("update")
    plain = federated(order, tmp_path / "plain", HARDENED)
    once = [event.steps for event in plain.of("update")]
    assert np.array_equal(first.steps, once[0])
    assert second.devices.tolist() == [0, 1, 2]
    # Devices 0 and 1 trained twice in round 2, by the same plan; of device 2, which is silent, the most is assumed.
    planned = store.records[1]["optimal_iterations"][:2].astype(int)
    assert second.steps.tolist() == [*(2 * planned), _most(order)]  # it was asked for one update
    assert (planned > 0.8 * once[1][:2]).all()


@pytest.mark.slow
def test_a_device_that_never_comes_back_is_charged_the_most(tmp_path: Path) -> None:
    order = tiny(*PRIVATE, preset="fair-mlp", rounds=2)
    with pytest.raises(Crash):
        federated(order, tmp_path / "run", HARDENED, Wire(cut_after=3))

    def gone(honest_app: ClientApp, message: Message, context: Context) -> Message:
        if int(context.node_config["partition-id"]) == 2:
            raise RuntimeError  # not even a greeting
        return honest_app(message, context)

    store = federated(order, tmp_path / "run", HARDENED, gone)
    last = store.of("update")[-1]
    assert last.devices.tolist() == [0, 1, 2]
    assert last.steps[2] == _most(order) > last.steps[:2].max()
    assert store.records[1]["participating"].all()


def _most(order: Order) -> int:
    """Iterations that fit into the deadline if uploading took no time."""
    compute, cell = order.scenario.compute, order.scenario.cell
    processor = compute.processor
    per_bit = seconds_per_bit(**processor.model_dump()) if processor else compute.seconds_per_bit
    return int(cell.deadline_s // (compute.bits_per_iteration * per_bit))


def test_a_round_that_fails_for_good_ends_with_a_remedy(tmp_path: Path) -> None:
    def nobody(honest: ClientApp, message: Message, context: Context) -> Message:
        raise RuntimeError

    settings = REPEATABLE.model_copy(update={"wait_s": 0.5})
    with pytest.raises(FederationError, match=r"round 1: 0 of 3 devices are connected after 0.5 s; every stored"):
        federated(tiny(), tmp_path / "run", settings, nobody)


@pytest.mark.slow
def test_secrets_are_private_and_stay(tmp_path: Path) -> None:
    order = tiny(rounds=1)
    federated(order, tmp_path / "run", HARDENED)
    secret = tmp_path / "run" / SECRET
    before = secret.read_bytes()
    assert secret.stat().st_mode & 0o077 == 0
    states = list((tmp_path / "run" / "devices").rglob("*.state"))
    assert len(states) == 3
    for state in states:
        assert state.stat().st_mode & 0o077 == 0
    federated(tiny(rounds=2), tmp_path / "run", HARDENED)
    assert secret.read_bytes() == before


@pytest.mark.slow
def test_hardened_noise_does_not_come_from_the_seed(tmp_path: Path) -> None:
    """Whoever knows the scenario could subtract seeded noise from its copy."""
    order = tiny(rounds=2)
    one = federated(order, tmp_path / "one", HARDENED).records
    other = federated(order, tmp_path / "other", HARDENED).records
    seeded = federated(order, tmp_path / "seeded").records
    again = federated(order, tmp_path / "again").records
    assert not np.array_equal(one[1]["received_loss"], other[1]["received_loss"])
    assert not np.array_equal(one[1]["received_loss"], seeded[1]["received_loss"])
    assert np.array_equal(seeded[1]["received_loss"], again[1]["received_loss"])


@pytest.mark.slow
def test_simulations_and_federations_do_not_mix(tmp_path: Path) -> None:
    order = tiny(rounds=1)
    federated(order, tmp_path / "federation")
    with pytest.raises(StoreError, match=r"holds a federation; resume it with the command that started it: test"):
        resume(tmp_path / "federation", "test")
    with pytest.raises(StoreError, match="holds a federation"):
        run(order, tmp_path / "federation", "test")
    run(order, tmp_path / "simulation", "test")
    with pytest.raises(StoreError, match="holds a simulation, not a federation"):
        federated(order, tmp_path / "simulation")
    with pytest.raises(StoreError, match=r"holds a run of another scenario, with learning.learning_rate"):
        federated(tiny("learning.learning_rate=0.5", rounds=1), tmp_path / "federation")


def test_two_access_points_cannot_share_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_run, "PREDECESSOR_LEAVES_S", 0.3)
    agreement = Agreement(tiny(rounds=1), REPEATABLE)
    first, second = (ServerRun(tmp_path / "run", agreement, "test") for _ in range(2))
    with first, pytest.raises(StoreError, match="another fairwave is running it"), second:
        pass
