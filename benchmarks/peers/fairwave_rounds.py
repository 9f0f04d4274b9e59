"""fairwave on the peers' jobs; all that the benchmarks use of its engine is here.

python fairwave_rounds.py steps JOB       exactly the peers' job: local steps on every core, and the mean
python fairwave_rounds.py training JOB    the engine's local training, with each client's loss on all its data after it
python fairwave_rounds.py whole JOB       whole rounds, stored: gradients, plans, noise, losses, accuracies, attacks
python fairwave_rounds.py passes JOB      what a whole round computes, as JSON for the sgemm limit
python fairwave_rounds.py plans FOLDER    iterations and noise of a run, as JSON for the same experiment elsewhere
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jobs
import numpy as np
from candidate import Wire

import fairwave
from fairwave.data import sources
from fairwave.double_precision import double_precision
from fairwave.engine.cell import SimulatedCell
from fairwave.engine.device_map import BEST_HERE, DeviceMap
from fairwave.engine.device_programs import training_program
from fairwave.engine.device_side import (
    HeldSamples,
    LocalTraining,
    SharedInputs,
    TrainingInputs,
    exchanges_gradients,
    update_noise,
)
from fairwave.engine.round_record import RoundRecord
from fairwave.engine.state import State
from fairwave.extensions import SCHEMES
from fairwave.keys import run_key
from fairwave.learning.local import train, update_of
from fairwave.learning.loss import CHUNK
from fairwave.learning.models import model_of
from fairwave.runs.experiment import Experiment
from fairwave.runs.order import Order, Track
from fairwave.runs.session import TrackProgress, run
from fairwave.runs.store import RunStore
from fairwave.scenario.loading import load_scenario
from fairwave.scenario.parameters import Scenario

SCHEME_OF = {jobs.PAPER.name: "proposed", jobs.TINY.name: "no_privacy"}
SETTINGS = {
    jobs.PAPER.name: (),
    jobs.TINY.name: (
        "cell.num_devices=1000",
        "cell.participants=10",
        "learning.model=softmax",
        "learning.layer_sizes=[784,10]",
        "learning.batch_size=10",
        "learning.learning_rate=0.03",
        "learning.gradient_exchange=false",
        "compute.min_iterations=6",
        "compute.max_iterations=6",
        "privacy.local_noise=false",
        "run.evaluate_every=20",
    ),
}
TRIED, TESTED = 1_000, 10_000
"""Test samples on which every copy is tried, and those on which the new model is."""
MOST_ROUNDS = 100_000
Passes = tuple[jobs.Pass, ...]


class Enough(Exception):
    """The harness has no more orders."""


class Gate:
    """Keeps the engine from computing ahead, while a round is stored, in the turn of another candidate."""

    def __init__(self) -> None:
        self._condition, self._until, self._closed = threading.Condition(), 1, False

    def __enter__(self) -> None:
        self._compute, self._begin = compute, begin = SimulatedCell.round, SimulatedCell.begin_next

        def in_turn(cell: SimulatedCell, state: State, number: int) -> tuple[State, RoundRecord]:
            with self._condition:
                self._condition.wait_for(lambda: self._closed or number < self._until)
            if self._closed:
                raise Enough
            return compute(cell, state, number)

        def early_in_turn(
            cell: SimulatedCell, before: State, state: State, number: int
        ) -> tuple[State, RoundRecord] | None:
            return begin(cell, before, state, number) if number < self._until else None

        SimulatedCell.round, SimulatedCell.begin_next = in_turn, early_in_turn

    def __exit__(self, *rest: object) -> None:
        SimulatedCell.round, SimulatedCell.begin_next = self._compute, self._begin

    def open(self, until: int | None) -> None:
        """Up to that many rounds; None ends all."""
        with self._condition:
            self._until, self._closed = until or 0, until is None
            self._condition.notify_all()


def scenario_of(job: jobs.Job) -> Scenario:
    """The job as a scenario."""
    return load_scenario("paper", list(SETTINGS[job.name]))


Each = Callable[[SharedInputs, Any, jax.Array, jax.Array], Any]
"""From shared inputs, the global model, all holdings and the round's clients to every client's update."""


def train_rounds(job: jobs.Job, each: Each, also: Passes = ()) -> None:
    """Rounds of local training and the mean; `also` are passes that `each` computes besides the job's."""
    wire, data, rng = Wire(), sources.load("mnist"), job.rng(2)
    with double_precision():
        params = [{"weight": jnp.asarray(weight), "bias": jnp.asarray(bias)} for weight, bias in job.weights()]
        holdings = jnp.asarray(job.holdings(), jnp.int32)
        samples = jnp.asarray(data.train_inputs), jnp.asarray(data.train_labels)
        number, root = 0, run_key(0)
        while True:
            shared = SharedInputs(root, jnp.asarray(number), *samples)
            updates = each(shared, params, holdings, jnp.asarray(job.chosen(rng)))
            params = jax.block_until_ready(_moved(params, updates))
            number += 1
            if not wire.turn():
                break
    reached = jobs.accuracy([(np.asarray(layer["weight"]), np.asarray(layer["bias"])) for layer in params])
    wire.end(reached, gflop_per_round=jobs.gflop(job.layers, [*job.passes(), *also]))


@jax.jit
def _moved(params: Any, updates: Any) -> Any:
    return jax.tree.map(lambda leaf, each: leaf + jnp.mean(each, axis=0), params, updates)


def steps(job: jobs.Job) -> None:
    """The peers' job: local steps alone, mapped as the engine maps devices."""
    learning = scenario_of(job).learning
    model = model_of(learning)

    def one(given: tuple[SharedInputs, Any, jax.Array], client: jax.Array) -> Any:
        shared, params, holdings = given
        key = jax.random.fold_in(jax.random.fold_in(shared.root, shared.round_index), client)
        samples = shared.samples(HeldSamples(holdings[client], jnp.asarray(job.held, jnp.int32)))
        trained = train(
            model,
            params,
            None,
            samples,
            key=key,
            iterations=jnp.asarray(job.steps),
            batch_size=job.batch,
            learning_rate=job.learning_rate,
        )
        return update_of(trained, params)

    mapped, execution = DeviceMap(one), BEST_HERE.for_steps(learning.num_parameters(), job.batch)
    train_rounds(job, lambda shared, params, holdings, chosen: mapped((shared, params, holdings), chosen, execution))


def training(job: jobs.Job) -> None:
    """The engine's local training, as a round calls it."""
    program = training_program(LocalTraining(model_of(scenario_of(job).learning), job.batch, job.learning_rate, 0.0))
    rows = min(CHUNK, job.held)
    losses = jobs.Pass(rows, False, job.cohort * job.held // rows)
    counts, iterations = jnp.full(job.cohort, job.held, jnp.int32), jnp.full(job.cohort, job.steps)
    honest = jnp.zeros(job.cohort, bool)

    def each(shared: SharedInputs, params: Any, holdings: jax.Array, chosen: jax.Array) -> Any:
        own = TrainingInputs(
            copy=jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (job.cohort, *leaf.shape)), params),
            own_gradient=None,
            held=HeldSamples(holdings[chosen], counts),
            trained_count=counts,
            flipped=honest,
            iterations=iterations,
            index=chosen,
        )
        return program(shared, own).update

    train_rounds(job, each, (losses,))


def whole(job: jobs.Job) -> None:
    """Whole rounds into a store, as `fairwave run` does them."""
    wire, scenario, scheme = Wire(), scenario_of(job), SCHEME_OF[job.name]
    reached = 0.0
    gate = Gate()

    def watch(progress: TrackProgress) -> None:
        nonlocal reached
        reached = reached if math.isnan(progress.test_accuracy) else progress.test_accuracy
        if progress.rounds:
            gate.open(progress.rounds + wire.left if wire.turn() else None)

    with tempfile.TemporaryDirectory() as folder:
        with contextlib.suppress(Enough), gate:
            run(Order(scenario, (scheme,), (0,), MOST_ROUNDS), Path(folder) / "run", "benchmark", watch)
        store = RunStore(Path(folder) / "run")
        trained = [int(record["local_iterations"].sum()) for record in store.records(Track(scheme, 0))]
        store.close()
    layers = scenario.learning.layer_sizes
    wire.end(reached, gflop=[jobs.gflop(layers, whole_round(scenario, scheme, count)) for count in trained])


def whole_round(scenario: Scenario, scheme: str, local_steps: int) -> list[jobs.Pass]:
    """What a round is defined to compute, for devices that hold equal shares of MNIST, without rare evaluations."""
    devices = scenario.cell.num_devices
    asked = scenario.cell.participants or devices
    held = 60_000 // devices
    rows = min(CHUNK, held)
    chunks = held // rows
    evaluation = (
        jobs.Pass(rows, False, devices * chunks),  # losses of the new model
        jobs.Pass(CHUNK, False, asked * TRIED // CHUNK),  # accuracies of received copies
        jobs.Pass(CHUNK, False, TESTED // CHUNK),  # test accuracy
        jobs.Pass(CHUNK, False, 2 * TESTED // CHUNK),  # losses of members and others, for the membership attack
    )
    return [
        jobs.Pass(scenario.learning.batch_size, True, local_steps),
        # Received copies on all data of their devices, with gradients where these are exchanged.
        jobs.Pass(rows, exchanges_gradients(scenario, SCHEMES[scheme]), asked * chunks),
        jobs.Pass(rows, False, asked * chunks),  # losses after training
        *(evaluation if scenario.run.evaluate_every == 1 else ()),
    ]


def passes(job: jobs.Job) -> list[jobs.Pass]:
    """Of a whole round with the mean number of planned steps."""
    scenario, scheme = scenario_of(job), SCHEME_OF[job.name]
    plans = fairwave.plan(scenario, ["proposed" if scheme == "proposed" else "max_power"], draws=20)
    each = float(np.nanmean(plans["local_iterations"].values))
    return whole_round(scenario, scheme, round(each * (scenario.cell.participants or scenario.cell.num_devices)))


def plans(folder: Path) -> dict[str, Any]:
    """The first model of a run and, by scheme, what each device did in each round, and how it ended."""
    store = RunStore(folder)
    order, told = store.order, {}
    first = Experiment(order).cell(next(order.tracks())).start().server.global_params
    for track in order.tracks():
        records = store.records(track)
        told[track.scheme] = {
            name: [record[name].tolist() for record in records]
            for name in ("local_iterations", "delivered", "noise_std", "test_accuracy", "global_loss")
        } | {"update_std": update_noise(order.scenario, SCHEMES[track.scheme])}
    store.close()
    weights = [np.asarray(layer[name]).tolist() for layer in first for name in ("weight", "bias")]
    return {"weights": weights, "schemes": told}


def main() -> None:
    """As the first argument says."""
    mode, what = sys.argv[1:]
    if mode == "passes":
        print(json.dumps(passes(jobs.ALL[what])))
    elif mode == "plans":
        print(json.dumps(plans(Path(what))))
    else:
        {"steps": steps, "training": training, "whole": whole}[mode](jobs.ALL[what])


if __name__ == "__main__":
    main()
