"""Points of a sweep: addressed draws, names of folders, and what the page averages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from fairwave.report.sweep_page import write_sweep
from fairwave.report.sweep_points import Axis, Row, write_points
from fairwave.studies.laws import Choice, Range
from fairwave.studies.point_names import LONGEST, point_name, shown
from fairwave.studies.sweep import chance, points
from fairwave.studies.sweep_file import Sweep

ENERGY = {"law": "log_uniform", "low": "0.2 J", "high": "1 J"}
DEVICES = {"law": "uniform", "low": 2, "high": 9}


def drawn(draws: int, seed: int = 0, **more: object) -> list[dict[str, object]]:
    random = {"draws": draws, "seed": seed, "utility.energy_reference_j": ENERGY, **more}
    return [dict(point.values) for point in points(Sweep(scenario="small", random=random), Path("study.toml"))]


def test_more_draws_keep_the_first():
    few, many = drawn(3), drawn(8)
    assert many[:3] == few and len({row["utility.energy_reference_j"] for row in many}) == 8


def test_another_parameter_moves_nothing_and_another_seed_everything():
    alone, beside, other = drawn(4), drawn(4, **{"cell.num_devices": DEVICES}), drawn(4, seed=1)
    for a, b, c in zip(alone, beside, other, strict=True):
        assert a["utility.energy_reference_j"] == b["utility.energy_reference_j"] != c["utility.energy_reference_j"]
        assert isinstance(b["cell.num_devices"], int)
    assert chance(0, 0, "a.b") != chance(0, 0, "a.c")


def test_the_grid_meets_the_same_draws():
    asked = Sweep(
        scenario="small",
        grid={"cell.num_devices": [2, 3]},
        random={"draws": 3, "utility.energy_reference_j": ENERGY},
    )
    found = [point.values for point in points(asked, Path("study.toml"))]
    by_devices = [
        [row["utility.energy_reference_j"] for row in found if row["cell.num_devices"] == devices] for devices in (2, 3)
    ]
    assert len(found) == 6 and by_devices[0] == by_devices[1]


def test_a_point_drawn_twice_is_run_once():
    random = {"draws": 20, "learning.batch_size": {"law": "choice", "values": [32, 64]}}
    found = points(Sweep(scenario="small", random=random), Path("study.toml"))
    assert sorted(point.values["learning.batch_size"] for point in found) == [32, 64]


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Range("uniform", 2.0, 6.0, whole=False), (2.0, 4.0, 6.0)),
        (Range("log_uniform", 0.01, 1.0, whole=False), (0.01, 0.1, 1.0)),
        (Range("uniform", 1, 4, whole=True), (1, 2, 4)),  # a quarter each; the half is the second's end
        (Range("uniform", 1 / 3, 2 / 3, whole=False), (1 / 3, 0.5, 2 / 3)),  # rounding leaves no range
        (Choice(law="choice", values=("a", "b", "c")), ("a", "b", "c")),
    ],
)
def test_laws_at_their_ends_and_in_the_middle(law, expected):
    assert tuple(law.draw(share) for share in (0.0, 0.5, 1.0 - 1e-12)) == expected


def test_whole_numbers_are_equally_likely():
    law = Range("uniform", 1, 4, whole=True)
    counts = np.unique([law.draw((k + 0.5) / 1000) for k in range(1000)], return_counts=True)[1]
    assert counts.tolist() == [250] * 4


def test_names_are_readable_and_do_not_depend_on_order_or_unit():
    assert point_name({"b.y": shown("250 kHz", 250000.0), "a.x": 0.3}) == "a.x=0.3,b.y=250000"
    assert point_name({"a.x": shown(1e-5, 1e-5)}) == "a.x=1e-05"
    assert shown(True, True) == "true" and shown("unset", None) == "unset" and shown("iid", "iid") == "iid"


def test_names_fit_a_folder_and_stay_apart():
    one, other = (point_name({"data.source": source}) for source in ("a/b.npz", "a b.npz"))
    assert one != other and "/" not in one and one.startswith("data.source=a-b.npz-")
    long = {f"group.parameter_{number}": 0.123456 for number in range(20)}
    assert len(point_name(long)) <= LONGEST + 9 and point_name(long) != point_name(long | {"group.parameter_3": 1})


def rows() -> list[Row]:
    """Energy is 1 J for a device, 10 J for every watt of a second parameter, and 0.1 J for every seed."""
    return [
        Row(
            f"run-{devices}-{power}",
            {"cell.num_devices": devices, "compute.compute_power_w": power},
            *("proposed", seed, 2),
            *(devices + 10.0 * power + 0.1 * seed, 0.01, 2.0, 0.5),
        )
        for devices in (4, 2)
        for power in (0.1, 0.3)
        for seed in (0, 1)
    ]


def test_each_seed_is_averaged_over_points_first(tmp_path):
    """At 2 devices: seeds 4.0 and 4.1 J. Student's 97.5 % point with one degree of freedom is 12.706."""
    page = write_sweep(rows(), [Axis("cell.num_devices"), Axis("compute.compute_power_w", "log_uniform")], "", tmp_path)
    text = page.read_text(encoding="utf-8")
    figure = text[text.index('"sweep-cell.num_devices-energy_j"') :]
    figure = figure[: figure.index("</script>")]
    assert "mean of the 2 points with that value, over compute.compute_power_w" in text
    assert "2 seeds" in text and "All points" in text and '"type":"log"' in text
    half = 12.7062 * np.std([4.0, 4.1], ddof=1) / 2**0.5
    panel = _decoded(figure)
    assert panel["x"] == [2.0, 4.0] and panel["y"] == pytest.approx([4050.0, 6050.0])
    assert panel["bars"] == pytest.approx([1e3 * half] * 2, rel=1e-4)
    assert (tmp_path / "figures" / "cell.num_devices-energy_j.svg").exists()


def _decoded(figure: str) -> dict[str, list[float]]:
    import json

    drawn = json.loads(figure[figure.index('{"traces"') :])["traces"][0]
    assert drawn["error_y"]["array"] == pytest.approx(drawn["error_y"]["arrayminus"])
    return {"x": drawn["x"], "y": drawn["y"], "bars": drawn["error_y"]["array"]}


def test_points_as_files(tmp_path):
    write_points(rows(), tmp_path)
    table = pyarrow.csv.read_csv(tmp_path / "points.csv").to_pydict()
    assert table == pyarrow.parquet.read_table(tmp_path / "points.parquet").to_pydict()
    assert table["cell.num_devices"][0] == 4 and table["energy_j"][0] == 5.0 and table["seed"] == [0, 1] * 4


def test_words_among_values(tmp_path):
    mixed = [
        Row("run", {"compute.max_iterations": value}, "proposed", 0, 1, 0.1, 0.1, 2.0, 0.5) for value in (90, "unset")
    ]
    page = write_sweep(mixed, [Axis("compute.max_iterations")], "", tmp_path)
    write_points(mixed, tmp_path)
    assert "unset" in page.read_text(encoding="utf-8")
    assert pyarrow.csv.read_csv(tmp_path / "points.csv")["compute.max_iterations"].to_pylist() == ["90", "unset"]
