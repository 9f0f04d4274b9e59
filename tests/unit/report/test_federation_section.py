"""The federation's part of a page, from made-up records."""

from __future__ import annotations

import numpy as np
import xarray as xr

from fairwave.report.federation_section import federation_section
from fairwave.report.tables import pieces_html

DIMS = ("scheme", "seed", "round", "device")


def results(participating: np.ndarray) -> xr.Dataset:
    """One scheme and seed; whoever takes part answers well."""
    shape = (1, 1, *participating.shape)
    fault = (DIMS, np.zeros(shape, np.int32), {"flag_values": [0, 1], "flag_meanings": "none no_answer"})
    times = {name: (DIMS[:3], np.ones(shape[:3])) for name in ("gradient_exchange_s", "update_exchange_s", "round_s")}
    return xr.Dataset(
        {
            "participating": (DIMS, participating.reshape(shape).astype(float)),
            "gradient_fault": fault,
            "update_fault": fault,
            **times,
        },
        coords={"scheme": ["proposed"], "seed": [0], "device": np.arange(participating.shape[1])},
    )


def test_devices_that_were_away_leave_a_trace():
    taken = np.ones((4, 3))
    taken[1:, 1], taken[:, 2] = 0.0, 0.0
    page = pieces_html(federation_section(results(taken)))
    assert "<td>4</td><td>1</td><td>device 2: 0</td><td>2</td>" in page.replace(' class="number"', "")
    taken[:, 2] = 1.0
    page = pieces_html(federation_section(results(taken)))
    assert "<td>4</td><td>2</td><td>device 1: 1</td><td></td>" in page.replace(' class="number"', "")


def test_where_all_were_there_nobody_is_named():
    page = pieces_html(federation_section(results(np.ones((4, 3)))))
    assert "<td>4</td><td>3</td><td></td><td></td>" in page.replace(' class="number"', "")
    assert "device 0" not in page
