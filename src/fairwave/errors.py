"""Everything fairwave raises on purpose.

FairwaveError
├── ScenarioError   a scenario, an override or a device file is wrong
├── ArgumentError   an option of a command or an argument of a call is wrong
├── SolveError      a device's optimum could not be certified
├── OutputError     a result could not be written
├── StoreError      a run's file is damaged, busy, or not what it was taken for
├── AuditError      an audit refuted a claim
└── FederationError too few devices answered, or the network could not be set up

A message is one line: where, what, remedy. The command line prints it and exits with `exit_code`;
anything that is not a FairwaveError is a bug and keeps its traceback.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable


class FairwaveError(Exception):
    """Base of all errors that a user can cause and correct."""

    exit_code = 1


class ScenarioError(FairwaveError):
    """A scenario, an override or a device file is wrong."""

    exit_code = 2


class ArgumentError(FairwaveError):
    """An option of a command or an argument of a call is wrong."""

    exit_code = 2


class SolveError(FairwaveError):
    """A device's optimum could not be certified."""

    exit_code = 3


class OutputError(FairwaveError):
    """A result could not be written."""

    exit_code = 4


class StoreError(FairwaveError):
    """A run's file is damaged, busy, or not what it was taken for."""

    exit_code = 5


class AuditError(FairwaveError):
    """An audit refuted a claim."""

    exit_code = 6


class FederationError(FairwaveError):
    """Too few devices answered, or the network could not be set up."""

    exit_code = 7


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy for a misspelt name: the nearest known one, or the whole list."""
    choices = sorted(known)
    near = difflib.get_close_matches(name, choices, n=1)
    return f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(choices)}"


def system_reason(error: OSError) -> str:
    """Why the operating system refused, without the file's name, which libraries put into their own words for it."""
    return str(error) if error.errno is None else os.strerror(error.errno)
