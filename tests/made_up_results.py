"""Results of runs that were never made, for tests that know what should be said about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

DIMS = ("scheme", "seed", "round", "device")


def made_up_results(
    schemes: Sequence[str],
    *,
    seeds: int,
    path_loss_db: Sequence[float] | np.ndarray,
    loss: np.ndarray,
    energy_j: np.ndarray,
    **others: np.ndarray,
) -> xr.Dataset:
    """Losses and energies as given (scheme, seed, round, device); whatever else is not given is the same for all.

    Path loss is a value per device, or per seed and device.
    """
    where = np.asarray(path_loss_db, float)
    shape = (len(schemes), seeds, loss.shape[2], where.shape[-1])
    draw = np.random.default_rng(0)
    energy = np.broadcast_to(energy_j, shape)
    values = {
        "loss": loss,
        "energy_j": energy,
        "compute_energy_j": energy / 4,
        "transmit_energy_j": energy * 3 / 4,
        "local_iterations": np.full(shape, 90),
        "uplink_rate_bps": np.full(shape, 5e6),
        "participating": np.ones(shape, bool),
        "received_loss": np.ones(shape),
        "outage": np.zeros(shape, bool),
        "cheating": np.zeros(shape, bool),
        "deviation": np.zeros(shape),
        "utility": np.zeros(shape),
        "findings": np.zeros(shape, int),
        "delivered": np.ones(shape, bool),
        "received_accuracy": np.full(shape, 0.9),
    } | others
    accuracy = (DIMS[:3], draw.random(shape[:3]))
    held = draw.integers(0, 9, (seeds, shape[3], 10))
    return xr.Dataset(
        {name: (DIMS, np.broadcast_to(value, shape).copy()) for name, value in values.items()}
        | {"test_accuracy": accuracy, "global_loss": accuracy, "membership_auc": accuracy}
        | {"samples": (("seed", "device", "class"), held)}
        | {"path_loss_db": (("seed", "device"), np.broadcast_to(where, (seeds, shape[3])).copy())},
        coords={
            "scheme": list(schemes),
            "seed": np.arange(seeds),
            "round": np.arange(1, shape[2] + 1),
            "device": np.arange(shape[3]),
        },
        attrs={"command": "fairwave run <b>x</b>"},
    )
