"""The access point before its first round: what it knows of the devices, tries models on, and releases by."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from fairwave.defences.judgement import in_use
from fairwave.engine.device_history import no_dossier, removed
from fairwave.engine.device_side import exchanges_gradients, update_noise
from fairwave.engine.guard import Guard, parameters_of
from fairwave.engine.invitation import Attendance, attendance, without
from fairwave.engine.presence import presence
from fairwave.engine.scoring import Practice
from fairwave.engine.state import Books, Kept
from fairwave.engine.steps import part_of
from fairwave.errors import ScenarioError
from fairwave.keys import run_key
from fairwave.learning.model import Model
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.per_device import DeviceValues
from fairwave.schemes.scheme import Scheme, Terms
from fairwave.types import Count
from fairwave.wireless.hardware import distances_m, path_gain
from fairwave.wireless.path_loss import path_loss_db

MOST_TRIED = 1_000
"""Test samples on which every device's copy is tried."""

Labelled = tuple[np.ndarray, np.ndarray]
"""Inputs and their labels."""


class Station:
    """All that a scenario and a scheme leave the same at the access point, for devices that hold so many samples."""

    def __init__(self, scenario: Scenario, scheme: Scheme, model: Model, test: Labelled, counts: np.ndarray) -> None:
        self.scenario, self.scheme, self.model = scenario, scheme, model
        inputs, labels = test
        privacy, learning = scenario.privacy, scenario.learning
        with jax.enable_x64(True):
            self.root = run_key(scenario.run.seed)
            values = DeviceValues(scenario)
            self.presence = presence(values)
            kept = self._kept_back(labels.size)
            self.test = (jnp.asarray(inputs[kept:]), jnp.asarray(labels[kept:]))
            self.tried_on = part_of(self.test, jnp.arange(min(MOST_TRIED, labels.size - kept)))
            self.own_samples = (jnp.asarray(inputs[:kept]), jnp.asarray(labels[:kept])) if kept else None
            self.guard = Guard(scenario, counts, parameters_of(model))
            self.counts = jnp.asarray(counts)
            self.devices = jnp.arange(scenario.cell.num_devices)
        self._least_iterations = values("min_iterations") if self.guard.mode == "provable" else None
        self._check_budget()
        self.local_std = update_noise(scenario, scheme)
        self.exchanges = exchanges_gradients(scenario, scheme)
        self.practice = Practice(
            scheme, privacy, scenario.defences, Terms(scenario.peers, learning.learning_rate),
            None if self.own_samples is None else model,
        )  # fmt: skip

    def geometry(self) -> dict[str, np.ndarray]:
        """Where the scenario places the devices."""
        values = DeviceValues(self.scenario)
        distance_m = distances_m(self.scenario, values)
        gain = np.broadcast_to(path_gain(self.scenario, values, distance_m), distance_m.shape)
        return {"distance_m": distance_m, "path_loss_db": path_loss_db(gain)}

    def equipped(self, books: Kept) -> Kept:
        """Books or a state before the first round, with what defences and the scheme keep."""
        return dataclasses.replace(
            books,
            dossier=no_dossier(self.scenario.defences, books.received),
            scheme_memory=self.scheme.start(self.devices.size),
        )

    def invited(self, books: Books, number: Count) -> Attendance:
        """Who is asked to take part in a round."""
        size = self.scenario.cell
        present: Attendance = attendance(
            size.num_devices, size.participants or size.num_devices, size.straggler_probability, self.root, number,
            self.presence,
        )  # fmt: skip
        if books.dossier is None:
            return present
        return without(present, removed(self.scenario.defences, books.dossier))

    def can_afford(self, books: Books, next_round: int) -> np.ndarray:
        """Who is there in that round, or comes later, and has privacy budget left to take part."""
        able = np.ones(self.devices.shape, bool)
        if self.guard.budget is not None:
            able &= self.guard.budget - np.asarray(books.spent) >= self.needed()
        if self.presence is not None:
            able &= self.presence.from_then_on(next_round)
        return able

    def needed(self) -> np.ndarray:
        """What the least participation in a round takes from each budget."""
        least = np.ones(()) if self._least_iterations is None else self._least_iterations
        return np.broadcast_to(least, self.devices.shape)

    def _check_budget(self) -> None:
        budget, needed = self.guard.budget, self.needed()
        if budget is not None and not (budget >= needed).any():
            raise ScenarioError(
                f"privacy.max_epsilon: {self.scenario.privacy.max_epsilon:g} pays for {budget.max()} "
                f"{'local steps' if self.guard.mode == 'provable' else 'rounds'} of a device, and taking part once "
                f"needs {needed.min():g} (compute.min_iterations); raise it, privacy.noise_multiplier, or the samples "
                "held"
            )

    def _kept_back(self, num_test: int) -> int:
        """Test samples that the access point uses, so that accuracy is measured on the others."""
        defences = self.scenario.defences
        if not (self.scheme.needs_samples or any(defence.needs_samples for _, defence in in_use(defences))):
            return 0
        if defences.validation_samples >= num_test:
            raise ScenarioError(
                f"defences.validation_samples: {defences.validation_samples} of {num_test} test samples leaves none to "
                "measure accuracy on; lower it"
            )
        return defences.validation_samples
