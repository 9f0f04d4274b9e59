"""The paper's stop rule: training ends when the global problem is solved to its accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from fairwave.engine.end_reasons import EndReason
from fairwave.errors import ScenarioError
from fairwave.runs.experiment import run_rounds
from tests.builders import clusters_cell, rounds_of

BEST = 0.001


def test_it_ends_in_the_first_round_that_is_near_enough():
    free = clusters_cell("no_privacy")
    losses = np.array([float(record.global_loss) for _, record in rounds_of(free, 12)])
    first = float(free.evaluator.loss(free.start().server.global_params, np.asarray(0)))
    reached = (losses - BEST) / (first - BEST)
    wanted = float(0.5 * (reached[5] + reached[6]))
    assert (reached[:6] > wanted).all() and reached[6] < wanted  # it falls, so that round 7 is the first
    run = clusters_cell("no_privacy", f"run.global_accuracy={wanted}", f"run.optimal_loss={BEST}")
    done = list(run_rounds(run, 12))
    assert len(done) == 7 and done[-1].ended is EndReason.GLOBAL_ACCURACY
    assert "run.global_accuracy" in EndReason.GLOBAL_ACCURACY.in_words()


def test_rounds_that_are_not_evaluated_end_nothing():
    settings = ("run.global_accuracy=0.999", f"run.optimal_loss={BEST}", "run.evaluate_every=4")
    assert len(list(run_rounds(clusters_cell("no_privacy", *settings), 12))) == 4


def test_an_optimum_that_leaves_nothing_to_gain_is_refused():
    with pytest.raises(ScenarioError, match=r"run.optimal_loss: 9 is not below the first model's loss, 1\.\d+"):
        clusters_cell("no_privacy", "run.global_accuracy=0.1", "run.optimal_loss=9")


@pytest.mark.parametrize("alone", ["run.global_accuracy=0.1", "run.optimal_loss=0.1"])
def test_one_without_the_other_is_refused(alone):
    with pytest.raises(ScenarioError, match="global_accuracy and optimal_loss go together"):
        clusters_cell("no_privacy", alone)
