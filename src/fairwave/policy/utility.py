"""What a device's round is worth to it."""

from __future__ import annotations

from fairwave.policy.effort import Effort, expected_deviation
from fairwave.types import Scalar


def utility(effort: Effort, compute_energy_j: Scalar, energy_j: Scalar, energy_reference_j: Scalar) -> Scalar:
    """Expected learning gain less energy cost; not finite if beta1 is beyond what a number can hold.

    The cost term peaks at half the reference: below it the utility rewards spending. Energies are in joules; the
    squared term makes any other unit a different utility.

    Paper: Eq. (30).
    """
    gain = effort.scale - expected_deviation(effort, compute_energy_j)
    return gain - energy_cost(energy_j, energy_reference_j)


def utility_of_choice(effort: Effort, compute_energy_j: Scalar, energy_j: Scalar, energy_reference_j: Scalar) -> Scalar:
    """The part of the utility that a device's choice changes: all but beta1, which would drown it where it is large."""
    return -expected_deviation(effort, compute_energy_j) - energy_cost(energy_j, energy_reference_j)


def energy_cost(energy_j: Scalar, energy_reference_j: Scalar) -> Scalar:
    """What energy costs in the utility; negative below the reference."""
    return energy_j * (energy_j - energy_reference_j)


def received_utility(
    effort_scale: Scalar, deviation: Scalar | float, energy_j: Scalar, energy_reference_j: Scalar
) -> Scalar:
    """What a round was worth to a device after the fact: the utility with the deviation that it received.

    `utility` has the deviation that a device expects of its effort, which is not what one that cheats gets.
    """
    return effort_scale - deviation - energy_cost(energy_j, energy_reference_j)


def most_utility(effort_scale: Scalar, energy_reference_j: Scalar) -> Scalar:
    """The most that a round can be worth after the fact, whatever a device does: no deviation, at the best energy.

    A deviation is never negative, and the cost of energy is least at half the reference.
    """
    return received_utility(effort_scale, 0.0, 0.5 * energy_reference_j, energy_reference_j)
