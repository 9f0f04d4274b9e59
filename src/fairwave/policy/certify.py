"""The check that devices' plans solve their problems. Nothing raises inside a compiled program; this does."""

from __future__ import annotations

import numpy as np

from fairwave.errors import SolveError
from fairwave.policy.device_plan import DevicePlan

LARGEST_VIOLATION = 1e-9
"""Relative; above it, a plan is no solution."""
_BEYOND_NUMBERS = (
    "its effort model expects more of work than a number can hold: raise utility.effort_decay_j towards the compute "
    "energy of a round, or choose another utility.effort_fit"
)


def certify(violation: np.ndarray, where: str = "", first: int = 0) -> None:
    """Raise where a plan breaks a constraint; `where` opens the message, `first` is the number of the first device."""
    bad = np.flatnonzero(~(violation <= LARGEST_VIOLATION))  # written so that NaN fails too
    if bad.size:
        raise SolveError(
            f"{where}device {first + bad[0]}: its optimum breaks a constraint by {violation[bad[0]]:.3g} (relative); "
            "check its parameters for extreme values and report the scenario"
        )


def certify_plans(plans: DevicePlan, where: str, first: int = 0) -> None:
    """Raise where a plan breaks a constraint, or where a number in it is not finite."""
    numbers = {name: np.atleast_1d(values) for name, values in vars(plans).items()}
    certify(numbers["violation"], where, first)
    for name, values in numbers.items():
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            remedy = _BEYOND_NUMBERS if "utility" in name else "check its parameters for extreme values"
            raise SolveError(
                f"{where}device {first + bad[0]}: the {name} of its plan is {values[bad[0]]:g}, which cannot be "
                f"stored; {remedy}"
            )
