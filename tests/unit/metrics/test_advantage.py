"""What misbehaviour brought, on records whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from fairwave.metrics.advantage import advantage
from fairwave.metrics.fairness import reward_correlation, worst_share


def record(**changes) -> dict[str, np.ndarray]:
    """Six rounds of four devices; the first two rounds are not to count."""
    ones = np.ones((6, 4))
    values = {
        "received_loss": ones * 2.0,
        "received_accuracy": ones * 0.5,
        "energy_j": ones * 0.25,
        "utility": ones,
        "deviation": ones * 0.1,
        "findings": ones * 0,
        "delivered": ones,
        "participating": ones,
    }
    told = {**values, **changes}
    return {name: np.where(np.arange(6)[:, None] < 2, 99.0, value) for name, value in told.items()}


def of_device(last: float, others: float) -> np.ndarray:
    return np.broadcast_to(np.array([others, others, others, last]), (6, 4))


def test_gaps_rates_and_harm():
    caught = np.zeros((6, 4))
    caught[3:, 3], caught[4, 0] = 2, 1
    run = record(
        received_loss=of_device(3.0, 2.1), energy_j=of_device(0.2, 0.25), deviation=of_device(1.0, 0.1), findings=caught
    )
    found = advantage(run, record(), [False, False, False, True], first=2)
    assert found.loss_gap == pytest.approx(3.0 / 2.1 - 1) and found.energy_saved == pytest.approx(0.2)
    assert found.loss_gained == pytest.approx(0.5) and found.energy_gained == pytest.approx(0.2)
    assert found.harm == pytest.approx(0.05) and found.cheats.deviation == 1.0
    assert found.detection_rate == pytest.approx(3 / 4) and found.false_alarm_rate == pytest.approx(1 / 12)


def test_rounds_without_the_device_do_not_count():
    asked = np.ones((6, 4))
    asked[2:4, 3] = 0
    loss = of_device(3.0, 2.0).copy()
    loss[2:4, 3] = np.nan
    found = advantage(record(received_loss=loss, participating=asked, delivered=asked), record(), [0, 0, 0, 1], 2)
    assert found.cheats.received_loss == 3.0 and found.detection_rate == 0.0
    nobody = advantage(record(participating=np.zeros((6, 4)), delivered=np.zeros((6, 4))), record(), [0, 0, 0, 1], 2)
    assert np.isnan(nobody.detection_rate) and np.isnan(nobody.cheats.received_loss)


def test_the_worst_tenth_and_what_work_earns():
    assert worst_share(np.arange(20)) == pytest.approx(18.5)
    assert worst_share([3.0, np.nan, 1.0]) == 3.0 and np.isnan(worst_share([]))
    assert worst_share(np.arange(10), 0.3) == pytest.approx(8.0)  # three, and not four for 0.3 * 10 being above 3
    gave, got = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 4.0])
    assert reward_correlation(gave, got) == pytest.approx(np.corrcoef(gave, got)[0, 1])
    assert np.isnan(reward_correlation(gave, np.ones(4))) and np.isnan(reward_correlation([1.0], [1.0]))
