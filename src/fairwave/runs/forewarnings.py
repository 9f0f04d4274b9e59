"""What a run would surprise with, said before it trains: sentences that name the parameter, the value and the remedy.

None of it is an error. `outlook` gathers what the checks look at, and each check is a function of that alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from fairwave.data.partition import holdings_of
from fairwave.data.sources import DataSet
from fairwave.double_precision import double_precision
from fairwave.policy.fleet import physical_devices
from fairwave.policy.passes import ALWAYS_ALLOWED, MOST_PASSES, iterations_of_passes
from fairwave.policy.problem import most_iterations_in_time
from fairwave.privacy.modes.mode import mode_of
from fairwave.scenario.parameters import Scenario
from fairwave.scenario.partition_laws import Own
from fairwave.scenario.per_device import DeviceValues

PAYLOAD_TOLERANCE = 0.1
"""Share by which the payload of plans may differ from the model's; the paper's own differs by a ten-thousandth."""
THOUSANDS = 1000
"""Iterations in a round from which a warning is due, however many samples there are."""
WORTH_OF_ROUNDS = 0.5
"""Share of the rounds that a privacy budget has to last for."""


@dataclasses.dataclass(frozen=True)
class Outlook:
    """What is known of a run before it trains."""

    scenario: Scenario
    rounds: int
    num_parameters: int
    """Parameters of the model that is trained, which need not be the scenario's."""
    in_time: np.ndarray
    """Per device, the most iterations that the deadline, or the scenario's own cap, leaves room for."""
    num_samples: int | None = None
    """Training samples in the data set; None where devices bring their own, or nobody has looked."""
    counts: np.ndarray | None = None
    """Per device, the samples it holds; None where nobody has looked."""
    budget: np.ndarray | None = None
    """Per device, the local steps or rounds that its privacy budget pays for; None without a budget."""


def outlook_of_plan(scenario: Scenario) -> Outlook:
    """What can be known where nothing is trained: nobody has looked at the data."""
    asked = scenario.data.samples_per_device
    counts = None if asked is None else np.full(scenario.cell.num_devices, asked)
    return Outlook(scenario, 0, scenario.learning.num_parameters(), _in_time(scenario), counts=counts)


def outlook_of_run(scenario: Scenario, rounds: int, data: DataSet | None, num_parameters: int | None = None) -> Outlook:
    """What can be known of a run; devices that bring their own data say how many samples they hold."""
    parameters = scenario.learning.num_parameters() if num_parameters is None else num_parameters
    if data is None or isinstance(scenario.data.partition, Own):
        num_samples, counts = None, np.full(scenario.cell.num_devices, scenario.data.samples_per_device)
    else:
        num_samples, counts = data.train_labels.size, holdings_of(scenario, data.train_labels, data.users).counts
    with double_precision():
        budget = mode_of(scenario.privacy).enforcement(scenario, counts, parameters).budget
    return Outlook(scenario, rounds, parameters, _in_time(scenario), num_samples, counts, budget)


def _in_time(scenario: Scenario) -> np.ndarray:
    """The most iterations that each device has time for."""
    with double_precision():
        most = np.asarray(most_iterations_in_time(physical_devices(scenario, DeviceValues(scenario))))
    return np.broadcast_to(most, (scenario.cell.num_devices,))


def forewarnings(seen: Outlook) -> list[str]:
    """All that is worth saying before training, one sentence each."""
    return [sentence for check in CHECKS if (sentence := check(seen)) is not None]


def payload(seen: Outlook) -> str | None:
    """Plans that charge for another upload than the model's."""
    learning, charged = seen.scenario.learning, seen.scenario.payload_bits()
    if learning.num_parameters() == seen.num_parameters:
        sent = float(learning.upload_bits())
    else:
        sent = float(seen.num_parameters * learning.bits_per_parameter)
    once = charged / 2.0 if seen.scenario.radio.charge_gradient_upload else charged
    if abs(once / sent - 1.0) <= PAYLOAD_TOLERANCE:
        return None
    remedy = "set it to unset" if seen.scenario.radio.payload_bits is not None else f"set it to {sent:.0f}"
    return (
        f"radio.payload_bits: plans charge {once / 1e3:,.4g} kbit for an update, and that of this model, with "
        f"{seen.num_parameters:,} parameters, has {sent / 1e3:,.4g} kbit; {remedy}, so that times and energies are the "
        "model's"
    )


def iterations(seen: Outlook) -> str | None:
    """More iterations in a round than the data are good for, or than anybody expects."""
    batch, limit = seen.scenario.learning.batch_size, seen.scenario.compute.max_iterations
    most = float(np.max(seen.in_time))
    room = f"a round has room for {most:,.0f} local iterations"
    if seen.counts is None:
        if most <= THOUSANDS or limit is not None:
            return None
        return (
            f"compute.max_iterations: {room}; a run does no more than {MOST_PASSES} passes over a device's own samples "
            f"(or {ALWAYS_ALLOWED} iterations), so that its plans will differ: set compute.max_iterations, or "
            "data.samples_per_device"
        )
    allowed = iterations_of_passes(batch, seen.counts)
    worst = int(np.argmax(seen.in_time / allowed))
    passes = seen.in_time[worst] * batch / seen.counts[worst]
    if seen.in_time[worst] > allowed[worst]:
        held = f"{passes:,.0f} passes over the {seen.counts[worst]:,} samples of device {worst}"
        taken = f"{allowed[worst]:,.0f} are allowed ({MOST_PASSES} passes, or {ALWAYS_ALLOWED} where that is more)"
        remedy = f"{taken}: set compute.max_iterations to choose" if limit is None else "lower it, or leave it out"
        return f"compute.max_iterations: {room}, {held}, after which training often diverges; {remedy}"
    if most > THOUSANDS:
        return (
            f"compute.max_iterations: {room}, which takes long to simulate and lets the models of devices drift apart; "
            "set compute.max_iterations to a few hundred"
        )
    return None


def samples(seen: Outlook) -> str | None:
    """Devices that are to hold more samples than there are."""
    asked, devices = seen.scenario.data.samples_per_device, seen.scenario.cell.num_devices
    if asked is None or seen.counts is None or seen.num_samples is None or asked * devices <= seen.num_samples:
        return None
    least, most = int(seen.counts.min()), int(seen.counts.max())
    held = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return (
        f"data.samples_per_device: {asked:,} for each of {devices:,} devices are more than the {seen.num_samples:,} "
        f"training samples there are; devices hold {held}: lower it, or take fewer devices"
    )


def budget(seen: Outlook) -> str | None:
    """A privacy budget that is spent long before the last round."""
    if seen.budget is None or seen.counts is None:
        return None
    privacy, cell, mode = seen.scenario.privacy, seen.scenario.cell, mode_of(seen.scenario.privacy)
    each = np.ones(seen.counts.shape)
    if mode.counts_steps:
        limited = seen.scenario.compute.max_iterations is None
        allowed = iterations_of_passes(seen.scenario.learning.batch_size, seen.counts)
        each = np.minimum(seen.in_time, allowed) if limited else seen.in_time
    turns = cell.num_devices / (cell.participants or cell.num_devices)
    lasting = int(turns * np.max(np.floor(seen.budget / each)))
    if lasting >= WORTH_OF_ROUNDS * seen.rounds:
        return None
    busy = " if devices do all iterations that fit" if mode.counts_steps else ""
    proposals = " ('fairwave privacy plan' proposes settings)" if mode.counts_steps else ""
    return (
        f"privacy.max_epsilon: epsilon {privacy.max_epsilon:g} lasts for {lasting:,} of {seen.rounds:,} rounds{busy}, "
        "after which no device takes part; raise privacy.noise_multiplier or privacy.max_epsilon, or ask for fewer "
        f"rounds{proposals}"
    )


Check = Callable[[Outlook], str | None]
CHECKS: tuple[Check, ...] = (payload, iterations, samples, budget)
