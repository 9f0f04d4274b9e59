"""A device by itself: what it remembers, measures, and refuses to do."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import jax
import numpy as np
import pytest
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fairwave.data.sources import DataSet, load
from fairwave.errors import FederationError, ScenarioError, SolveError
from fairwave.federate.client import DeviceClient
from fairwave.federate.client_data import agreed_counts, own_samples
from fairwave.federate.client_state import DIGEST, ClientStateFile, _digest
from fairwave.federate.meter import Meter
from fairwave.federate.protocol import Phase, Reason, Status, Task
from fairwave.federate.settings import Settings
from fairwave.federate.setup import access_point, device_client
from fairwave.federate.task_checks import agreement_digest
from fairwave.learning.named_arrays import named_arrays
from fairwave.private_files import replace_file
from fairwave.runs.experiment import Experiment
from fairwave.runs.faults import Fault
from fairwave.runs.order import Track
from fairwave.runs.packing import pack, unpack
from fairwave.scenario.loading import load_scenario
from tests.federate.parties import REPEATABLE, TINY, federated, flat, tiny

TRACK = Track("proposed", 0)


def _client(folder: Path, settings: Settings = REPEATABLE, counters: Path | None = None) -> DeviceClient:
    client = device_client(tiny(), settings, TRACK, 0, load("mnist"), folder / "own.state")
    if counters is not None:
        client._counters = counters
    return client


def _copy() -> np.ndarray:
    copies = access_point(Experiment(tiny()), TRACK, None).start().copies.of_devices
    return flat(named_arrays(jax.tree.map(lambda leaf: leaf[0], copies)))


AGREED = agreement_digest(tiny().scenario, TRACK.scheme, REPEATABLE.noise)


def _task(number: int, phase: Phase, copy: np.ndarray | None = None, mean: np.ndarray | None = None) -> Task:
    return Task("test", *TRACK, AGREED, number, phase, 0.2, number - 1, -1, copy, mean)


def test_a_device_does_nothing_out_of_turn(tmp_path: Path) -> None:
    client, copy = _client(tmp_path), _copy()
    assert client.answer(_task(0, Phase.UPDATE)).status is Status.STALE  # a round that it never entered
    first = client.answer(_task(3, Phase.GRADIENT, copy))
    assert first.status is Status.SENT
    assert first.round == 3
    before = (tmp_path / "own.state").read_bytes()
    assert client.answer(_task(2, Phase.GRADIENT, copy)).status is Status.STALE
    assert client.answer(_task(2, Phase.UPDATE)).status is Status.STALE
    assert (
        client.answer(_task(3, Phase.GRADIENT, copy + np.float32(1.0))).status is Status.STALE
    )  # not the round's copy
    assert (tmp_path / "own.state").read_bytes() == before


@pytest.mark.parametrize("agreed", [b"", b"?" * 16, AGREED + b"?", AGREED[:-1]])
def test_a_task_under_another_agreement_is_refused(agreed: bytes, tmp_path: Path) -> None:
    """The device has its own copy of what was agreed on, and trusts no other."""
    client, task = _client(tmp_path), _task(0, Phase.GRADIENT, _copy())
    answer = client.answer(dataclasses.replace(task, agreement=agreed))
    assert (answer.status, answer.reason, answer.values) == (Status.FAILED, Reason.OTHER_AGREEMENT, None)
    assert not (tmp_path / "own.state").exists()
    assert client.answer(task).status is Status.SENT


def test_agreements_of_other_scenarios_schemes_and_noise_differ() -> None:
    scenario = tiny().scenario
    others = [
        agreement_digest(tiny("learning.learning_rate=0.02").scenario, TRACK.scheme, REPEATABLE.noise),
        agreement_digest(scenario, TRACK.scheme, "hardened"),
    ]
    assert AGREED not in others
    fair = tiny(preset="fair-mlp").scenario
    assert agreement_digest(fair, "proposed", "hardened") != agreement_digest(fair, "max_power", "hardened")


def test_a_device_that_restarts_between_exchanges_goes_on(tmp_path: Path) -> None:
    """Every message may meet a new process: the answers are those of one that never stopped."""
    copy = _copy()
    steady, answers = _client(tmp_path / "steady"), []
    for fresh in (False, True):
        sent = []
        for number in (0, 1):
            for phase in Phase:
                client = _client(tmp_path / "restarted") if fresh else steady
                given = copy if phase is Phase.GRADIENT else None
                mean = None if phase is Phase.GRADIENT else sent[-1].values
                sent.append(client.answer(_task(number, phase, given, mean)))
        answers.append(sent)
    for one, other in zip(*answers, strict=True):
        assert one.status == other.status
        assert np.array_equal(one.values, other.values)
        timeless = {name for name in one.telemetry if name != "wall_time_s"}
        assert all(one.telemetry[name] == other.telemetry[name] for name in timeless)


def test_received_deviations_change_what_a_device_does(tmp_path: Path) -> None:
    """The effort estimate follows the deviation that the device receives, and nothing else reaches it."""
    copy = _copy()
    kept = {}
    for deviation in (0.0, 0.9):
        client = _client(tmp_path / str(deviation))
        client.answer(_task(0, Phase.GRADIENT, copy))
        client.answer(_task(0, Phase.UPDATE))
        client.answer(dataclasses.replace(_task(1, Phase.GRADIENT, copy), deviation=deviation))
        kept[deviation] = client._file.read().effort.effort
    assert float(kept[0.0].scale) != float(kept[0.9].scale)
    ignored = _client(tmp_path / "ignored")
    ignored.answer(_task(0, Phase.GRADIENT, copy))
    ignored.answer(_task(0, Phase.UPDATE))
    before = ignored._file.read().effort.effort
    ignored.answer(dataclasses.replace(_task(1, Phase.GRADIENT, copy), deviation=0.9, scored_round=-1))
    assert float(ignored._file.read().effort.effort.scale) == float(before.scale)


def test_a_state_that_holds_a_scale_instead_of_its_logarithm_is_read(tmp_path: Path) -> None:
    client = _client(tmp_path)
    client.answer(_task(0, Phase.GRADIENT, _copy()))
    kept = unpack((tmp_path / "own.state").read_bytes().split(b"\n", 1)[1][DIGEST:])
    old = {
        name.replace(".log_scale", ".scale"): np.exp(array) if name.endswith(".log_scale") else array
        for name, array in kept.items()
    }
    content = pack(old)
    replace_file(tmp_path / "own.state", _digest(content) + content)
    read = _client(tmp_path)._file.read()
    assert float(read.effort.effort.scale) == pytest.approx(tiny().scenario.utility.effort_scale, rel=1e-12)
    assert read.round == 0


def test_a_device_sends_nothing_for_a_plan_that_is_not_finite(tmp_path: Path) -> None:
    """Its effort model expects e^1000 of work: the device refuses, and names itself and the round."""
    client, copy = _client(tmp_path), _copy()
    client.answer(_task(0, Phase.GRADIENT, copy))
    state = client._file.read()
    beyond = dataclasses.replace(state.effort.effort, log_scale=np.asarray(1e3))
    client._file.write(dataclasses.replace(state, effort=dataclasses.replace(state.effort, effort=beyond)))
    with pytest.raises(SolveError, match=r"^round 1, device 0: the optimal_utility of its plan is inf.*effort_decay_j"):
        client.answer(_task(0, Phase.UPDATE))


class Counter:
    """A fake RAPL counter that moves on by so much each time that it is read."""

    def __init__(self, folder: Path, name: str, start: int, span: int = 1_000_000) -> None:
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        (self.folder / "energy_uj").write_text(f"{start}\n")
        (self.folder / "max_energy_range_uj").write_text(f"{span}\n")

    def set(self, value: int) -> None:
        (self.folder / "energy_uj").write_text(f"{value}\n")


def test_energy_is_read_from_the_processor_where_it_counts(tmp_path: Path) -> None:
    one, two = Counter(tmp_path, "intel-rapl:0", 100), Counter(tmp_path, "intel-rapl:1", 999_900)
    part = Counter(tmp_path, "intel-rapl:0:0", 0)  # already in its package's count
    with Meter(tmp_path) as meter:
        one.set(250_100)
        two.set(99)  # over the top: it starts again from 0
        part.set(500_000)
    assert meter.energy_j == pytest.approx(0.2502, abs=1e-9)
    assert meter.seconds > 0.0
    with Meter(tmp_path / "nothing") as none:
        pass
    assert none.energy_j is None


def test_a_counter_that_may_not_be_read_is_none(tmp_path: Path) -> None:
    Counter(tmp_path, "intel-rapl:0", 100)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    (tmp_path / "intel-rapl:0" / "energy_uj").mkdir()  # reading it fails, whoever asks
    with Meter(tmp_path) as meter:
        pass
    assert meter.energy_j is None


@pytest.mark.parametrize("energy", ["measured", "model"])
def test_measured_energy_is_what_the_device_learns_from(energy: str, tmp_path: Path) -> None:
    Counter(tmp_path, "intel-rapl:0", 7)
    settings = REPEATABLE.model_copy(update={"energy": energy})
    client = _client(tmp_path, settings, tmp_path)
    client.answer(_task(0, Phase.GRADIENT, _copy()))
    reported = client.answer(_task(0, Phase.UPDATE)).telemetry
    if energy == "measured":  # the counter stood still
        assert reported["compute_energy_j"] == 0.0
        assert reported["energy_j"] == reported["transmit_energy_j"]
    else:
        assert reported["compute_energy_j"] > 0.01
    assert client._file.read().compute_energy_j == reported["compute_energy_j"]


def test_where_records_are_protected_nothing_measured_leaves_or_is_learned_from(tmp_path: Path) -> None:
    """Energy and time of private training depend on which records were drawn: the model's energy stands for both."""
    Counter(tmp_path, "intel-rapl:0", 7)
    order = tiny("privacy.noise_source=hardened", preset="fair-mlp")
    settings = Settings(telemetry=True, energy="measured")
    client = device_client(order, settings, TRACK, 0, load("mnist"), tmp_path / "own.state")
    client._counters = tmp_path
    task = dataclasses.replace(_task(0, Phase.UPDATE, np.zeros(7850, np.float32)), agreement=client.agreement)
    reported = client.answer(task).telemetry
    assert reported["compute_energy_j"] > 0.01  # the counter stood still
    assert client._file.read().compute_energy_j == reported["compute_energy_j"]
    assert {"wall_time_s", "loss", "received_loss", "update_norm"} & set(reported) == set()


def test_without_telemetry_a_device_reports_nothing_of_its_energy(tmp_path: Path) -> None:
    client = _client(tmp_path, REPEATABLE.model_copy(update={"telemetry": False}))
    client.answer(_task(0, Phase.GRADIENT, _copy()))
    answer = client.answer(_task(0, Phase.UPDATE))
    assert answer.telemetry == {}
    assert {field.name for field in dataclasses.fields(answer)} == {
        "round",
        "status",
        "values",
        "examples",
        "spent",
        "state_name",
        "exhausted",
        "reported_noise_std",
        "reported_loss",
        "telemetry",
        "gradients",
        "update_asks",
        "gradient_asks",
        "reason",
    }
    assert np.isnan(answer.reported_loss)


def test_a_client_state_file_is_whole_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = _client(tmp_path)
    client.answer(_task(0, Phase.GRADIENT, _copy()))
    before = (tmp_path / "own.state").read_bytes()

    def cut(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", cut)
        replace_file(tmp_path / "own.state", b"half")
    assert (tmp_path / "own.state").read_bytes() == before
    assert isinstance(client._file, ClientStateFile)
    assert client._file.read().round == 0


def test_devices_can_bring_their_own_data(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    own = DataSet(
        train_inputs=draw.integers(0, 255, (70, 784), np.uint8),
        train_labels=draw.integers(0, 10, 70, np.int32),
        test_inputs=draw.integers(0, 255, (5, 784), np.uint8),
        test_labels=draw.integers(0, 10, 5, np.int32),
    )
    scenario = load_scenario("small", [*TINY, 'data.partition={law="own"}'])
    held = own_samples(scenario, own, 1)
    assert held.count == 60
    assert np.array_equal(held.labels, own.train_labels[:60])
    assert agreed_counts(scenario, np.zeros(0)).tolist() == [60, 60, 60]
    few = load_scenario("small", [*TINY, 'data.partition={law="own"}', "data.samples_per_device=71"])
    with pytest.raises(ScenarioError, match=r"device 1 has 70 samples of its own, fewer than 71; lower it"):
        own_samples(few, own, 1)


def test_a_class_that_the_network_does_not_have_decides_nothing_but_its_own_record(tmp_path: Path) -> None:
    """To refuse the data would tell whether one record is there."""
    draw = np.random.default_rng(0)
    images, labels = draw.integers(0, 255, (60, 784), np.uint8), draw.integers(0, 10, 60, np.int32)
    scenario = load_scenario("small", [*TINY, 'data.partition={law="own"}'])
    odd = labels.copy()
    odd[7] = 10
    held = own_samples(scenario, DataSet(images, odd, images[:5], labels[:5]), 1)
    assert held.labels[7] == 9
    assert np.array_equal(np.delete(held.labels, 7), np.delete(labels, 7))
    order = tiny('data.partition={law="own"}')
    device_client(order, REPEATABLE, TRACK, 1, DataSet(images, odd, images[:5], labels[:5]), tmp_path / "s")


def test_a_federation_of_devices_with_their_own_data(tmp_path: Path) -> None:
    """Each trains on its own file; one that was given none takes no part, and says why."""
    whole, order = load("mnist"), tiny('data.partition={law="own"}', rounds=2)
    for device in (0, 1):
        part = slice(100 * device, 100 * device + 70)
        np.savez(
            tmp_path / f"{device}.npz",
            train_images=whole.train_inputs[part],
            train_labels=whole.train_labels[part],
            test_images=whole.test_inputs[:5],
            test_labels=whole.test_labels[:5],
        )

    def brings(honest: ClientApp, message: Message, context: Context) -> Message:
        own = tmp_path / f"{context.node_config['partition-id']}.npz"
        given = {**context.node_config, **({"data": str(own)} if own.exists() else {})}
        return honest(message, Context(1, context.node_id, given, context.state, {}))

    held = federated(order, tmp_path / "run", meddle=brings)
    for record in held.records:
        assert record["delivered"].tolist() == [True, True, False]
        assert record["gradient_fault"].tolist() == [0, 0, int(Fault.FAILED)]
        assert np.isfinite(record["loss"][:2]).all()
    log = (tmp_path / "run" / "federation.jsonl").read_text("utf-8")
    assert '"event": "device error", "device": 2, "why": "configuration"' in log
    own_log = (tmp_path / "run" / "devices" / "device-2" / "device.log").read_text("utf-8")
    assert "node-config: no 'data', and data.partition says that devices bring their own" in own_log


def test_a_damaged_client_state_file_is_refused(tmp_path: Path) -> None:
    client = _client(tmp_path)
    client.answer(_task(0, Phase.GRADIENT, _copy()))
    whole = (tmp_path / "own.state").read_bytes()
    for content in (whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:], b""):
        (tmp_path / "own.state").write_bytes(content)
        with pytest.raises(FederationError, match=r"own\.state: damaged"):
            client._file.read()
