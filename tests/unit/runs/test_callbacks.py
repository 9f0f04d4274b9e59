"""Callbacks are told of every round, and none of them can cost one."""

from __future__ import annotations

import numpy as np
import pytest

import fairwave
from fairwave.errors import ArgumentError
from fairwave.extensions import PRIVACY_MODES
from fairwave.runs.order import Order
from fairwave.runs.session import run
from fairwave.trackers.callback_calls import CallbackCalls
from fairwave.trackers.round_values import round_values
from tests.builders import SOFTMAX_MNIST

SCENARIO = fairwave.load_scenario("small", SOFTMAX_MNIST)


class Diary(fairwave.Callback):
    def __init__(self) -> None:
        self.lines: list[tuple] = []

    def on_start(self, training: fairwave.Training) -> None:
        self.lines.append(("start", training.name, training.rounds, training.done))

    def on_round(self, training: fairwave.Training, done: fairwave.RoundValues) -> None:
        self.lines.append(("round", training.name, done.number, dict(done.values)))

    def on_end(self, training: fairwave.Training, reason: str) -> None:
        self.lines.append(("end", training.name, reason))


class Broken(Diary):
    def on_round(self, training: fairwave.Training, done: fairwave.RoundValues) -> None:
        super().on_round(training, done)
        raise ConnectionError("the server\nis gone")


def test_a_callback_is_told_what_the_results_have():
    diary = Diary()
    results = fairwave.simulate(SCENARIO, "proposed", seeds=0, rounds=2, callbacks=[diary]).results.isel(
        scheme=0, seed=0
    )
    assert [line[:3] for line in diary.lines] == [
        ("start", "proposed-seed-0", 2),
        ("round", "proposed-seed-0", 1),
        ("round", "proposed-seed-0", 2),
        ("end", "proposed-seed-0", "done"),
    ]
    for number in (1, 2):
        told, held = diary.lines[number][3], results.sel(round=number)
        assert told["test_accuracy"] == pytest.approx(float(held["test_accuracy"]))
        assert told["energy_j"] == pytest.approx(float(held["energy_j"].mean()))
        assert told["energy_std_j"] == pytest.approx(float(held["energy_j"].std()))
        assert told["loss"] == pytest.approx(float(held["loss"].mean()))
        assert told["updates_used"] == 3.0 and told["outages"] == 0.0


def test_one_that_fails_is_left_out_with_a_warning_and_the_others_go_on(tmp_path):
    """In a simulation and in a run: the rounds are those that there would be without it."""
    broken, diary = Broken(), Diary()
    with pytest.warns(RuntimeWarning, match=r"Broken.on_round: failed for proposed-seed-0 \(ConnectionError: the s"):
        results = fairwave.simulate(SCENARIO, "proposed", rounds=3, callbacks=[broken, diary]).results
    assert [line[0] for line in broken.lines] == ["start", "round"]
    assert [line[0] for line in diary.lines] == ["start", "round", "round", "round", "end"]
    said: list[str] = []
    broken = Broken()
    order = Order.checked(SCENARIO, "proposed", 0, 3)
    run(order, tmp_path / "run", "test", follow=lambda training: CallbackCalls([broken], training, said.append))
    assert len(said) == 1 and said[0].endswith("it is not called again for it, and training continues")
    with fairwave.open_run(tmp_path / "run") as opened:
        np.testing.assert_array_equal(opened.results["loss"].values, results["loss"].values)


def test_a_run_that_goes_on_says_where_and_one_that_is_cut_short_says_so(tmp_path):
    class Stops(Diary):
        def on_round(self, training: fairwave.Training, done: fairwave.RoundValues) -> None:
            super().on_round(training, done)
            raise KeyboardInterrupt

    stops, diary = Stops(), Diary()
    with pytest.raises(KeyboardInterrupt):
        run(
            Order.checked(SCENARIO, "proposed", 0, 3),
            tmp_path / "run",
            "test",
            follow=lambda training: CallbackCalls([stops], training),
        )
    assert stops.lines[-1] == ("end", "proposed-seed-0", "interrupted")
    with fairwave.open_run(tmp_path / "run") as opened:
        stored = opened.results.sizes["round"]
    assert stored >= 1  # what was told had been stored
    run(
        Order.checked(SCENARIO, "proposed", 0, 4),
        tmp_path / "run",
        "test",
        follow=lambda training: CallbackCalls([diary], training),
    )
    assert diary.lines[0] == ("start", "proposed-seed-0", 4, stored)
    assert [line[2] for line in diary.lines if line[0] == "round"] == list(range(stored + 1, 5))


def test_values_that_no_proof_covers_have_another_name():
    devices = {"participating": np.array([True, True]), "outage": np.array([False, True])}
    values = ("loss", "received_loss", "received_accuracy", "energy_j", "local_iterations", "transmit_power_w")
    arrays = devices | {name: np.array([1.0, 3.0]) for name in (*values, "deviation", "noise_std", "delivered")}
    arrays |= {"global_loss": np.array(0.5), "test_accuracy": np.array(0.25), "membership_auc": np.array(np.nan)}
    proved = round_values(arrays, 4, PRIVACY_MODES["provable"]).values
    assert proved["not_private/loss"] == 2.0 and proved["not_private/global_loss"] == 0.5
    assert proved["test_accuracy"] == 0.25 and proved["energy_j"] == 1.0  # of the one that uploaded
    assert "membership_auc" not in proved and "not_private/membership_auc" not in proved
    bare = PRIVACY_MODES["provable"].not_private()
    assert not {name for name in proved if name in bare}
    assert round_values(arrays, 4, PRIVACY_MODES["paper"]).values["loss"] == 2.0


@pytest.mark.parametrize(("seeds", "said"), [("0..4", "'0..4' is no whole"), ([0.5], "0.5 is no"), (True, "True is")])
def test_seeds_that_are_no_numbers_are_refused(seeds, said):
    with pytest.raises(ArgumentError, match=f"seeds: {said}.*; give one such as 0, or several such as"):
        fairwave.simulate(SCENARIO, "proposed", seeds=seeds)


def test_a_scheme_and_a_seed_may_stand_alone():
    order = Order.checked(SCENARIO, "proposed", 0)
    assert (order.schemes, order.seeds) == (("proposed",), (0,))
    assert Order.checked(SCENARIO, np.array(["proposed"]), np.arange(2)).seeds == (0, 1)
    with pytest.raises(ArgumentError, match="schemes: unknown scheme 'proposd'; did you mean 'proposed'"):
        Order.checked(SCENARIO, "proposd")
