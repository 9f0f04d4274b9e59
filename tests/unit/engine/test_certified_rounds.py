"""A run stops at a plan that no number can describe, and says whose it is."""

from __future__ import annotations

import pytest

from fairwave.errors import SolveError
from fairwave.runs.experiment import run_rounds
from tests.builders import clusters_cell

PRIOR = ("utility.effort_fit=prior", "utility.effort_decay_j=50 uJ")
"""A round's compute energy is 1,100 times this beta2, so that the first deviation gives beta1 = e^1100."""


def test_a_utility_that_is_not_finite_ends_the_run():
    done = []
    with pytest.raises(
        SolveError, match=r"^proposed, round 2, device \d: the optimal_utility of its plan is inf, which cannot"
    ):
        done.extend(run_rounds(clusters_cell("proposed", *PRIOR), 3))
    assert len(done) == 1  # the first round, before anything was fitted, is kept


def test_the_same_scenario_runs_with_the_paper_s_fit():
    """The least change of (beta1, beta2) moves beta2, so that beta1 stays small."""
    assert len(list(run_rounds(clusters_cell("proposed", *PRIOR[1:]), 3))) == 3
