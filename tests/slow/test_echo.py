"""The known break of the paper's similarity, on MNIST: a device that sends back the model it received."""

from __future__ import annotations

import numpy as np
import pytest

import fairwave

ECHO = 'cheating.adversaries=[{ behaviour = "echo_model", devices = [9], first_round = 3 }]'


@pytest.mark.slow
def test_an_echoed_model_gets_the_best_copy_and_honest_devices_are_punished():
    deviation, accuracy = {}, {}
    for rule in ("literal", "leave_one_out"):
        scenario = fairwave.load_scenario(
            "paper-clean", ["data.samples_per_device=900", f"privacy.similarity={rule}", ECHO]
        )
        results = fairwave.simulate(scenario, ["proposed"], rounds=12).results.isel(scheme=0, seed=0)
        assert results["cheating"].sum() == 10 and not results["cheating"].isel(round=slice(0, 2)).any()
        deviation[rule] = results["deviation"].isel(round=slice(4, None)).mean("round").values
        accuracy[rule] = float(results["test_accuracy"][-1])
        assert (results["compute_energy_j"].isel(round=-1, device=9) == 0).all()
    honest = np.arange(10) < 9
    assert deviation["literal"][9] < 0.05 and deviation["literal"][honest].mean() > 0.5
    assert deviation["leave_one_out"][9] > 0.9 and deviation["leave_one_out"][honest].mean() < 0.2
    assert accuracy["leave_one_out"] > accuracy["literal"] + 0.1
