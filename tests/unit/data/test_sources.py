from __future__ import annotations

import gzip
import struct
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from fairwave.data.sources import load, load_for
from fairwave.errors import ScenarioError
from fairwave.learning.loss import scaled
from fairwave.scenario.loading import load_scenario

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


@pytest.fixture
def arrays() -> list[np.ndarray]:
    draw = np.random.default_rng(0)
    return [
        draw.integers(0, 256, (30, 28, 28)),
        draw.integers(0, 10, 30),
        draw.integers(0, 256, (12, 28, 28)),
        draw.integers(0, 10, 12),
    ]


def test_bundled_mnist_is_the_canonical_one():
    """Sizes, classes and the well-known counts of the canonical files: 5,923 zeros and 6,742 ones in training."""
    data = load("mnist")
    assert (data.train_inputs.shape, data.test_inputs.shape) == ((60_000, 28, 28), (10_000, 28, 28))
    assert (data.num_classes, data.num_features) == (10, 784)
    assert np.bincount(data.train_labels)[:2].tolist() == [5_923, 6_742]
    assert data.train_labels[:8].tolist() == [5, 0, 4, 1, 9, 2, 1, 3]


@pytest.mark.parametrize("before_idx", ["-", "."])
@pytest.mark.parametrize("packed", [False, True])
def test_idx_folder(arrays, packed: bool, before_idx: str, tmp_path: Path):
    for published, array in zip(NAMES, arrays, strict=True):
        name, content = published.replace("-idx", f"{before_idx}idx"), idx(array)
        (tmp_path / (f"{name}.gz" if packed else name)).write_bytes(gzip.compress(content) if packed else content)
    data = load(str(tmp_path))
    assert (data.train_inputs == arrays[0]).all() and (data.test_labels == arrays[3]).all()


def test_npz(arrays, tmp_path: Path):
    names = ("train_images", "train_labels", "test_images", "test_labels")
    np.savez(tmp_path / "set.npz", **dict(zip(names, arrays, strict=True)))
    assert (load(str(tmp_path / "set.npz")).train_inputs == arrays[0]).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a: [a[0][:5], *a[1:]], "one label per input"),
        (lambda a: [a[0], a[1] - 20, *a[2:]], "number the classes from 0"),
        (lambda a: [a[0] * np.nan, *a[1:]], "not finite"),
        (lambda a: [a[0][:0], a[1][:0], *a[2:]], "one label per input"),
        (lambda a: [*a[:2], a[2][:, :5], a[3]], "make them equal"),
        (lambda a: [a[0].astype(str), *a[1:]], "not numbers"),
        (lambda a: [a[0], a[1] + 2**32, *a[2:]], "number the classes from 0"),
    ],
)
def test_arrays_that_do_not_fit(arrays, change, said, tmp_path: Path):
    names = ("train_images", "train_labels", "test_images", "test_labels")
    np.savez(tmp_path / "set.npz", **dict(zip(names, change(arrays), strict=True)))
    with pytest.raises(ScenarioError, match=said):
        load(str(tmp_path / "set.npz"))


def test_files_that_are_no_data_set(tmp_path: Path):
    with pytest.raises(ScenarioError, match="no data set or file"):
        load("nowhere")
    with pytest.raises(ScenarioError, match="no file train-images"):
        load(str(tmp_path))
    (tmp_path / "broken.npz").write_bytes(b"PK but no")
    with pytest.raises(ScenarioError, match=r"not a readable \.npz"):
        load(str(tmp_path / "broken.npz"))
    (tmp_path / NAMES[0]).write_bytes(b"\x00\x00\x08\x03\x00")
    with pytest.raises(ScenarioError, match="not a valid idx file"):
        load(str(tmp_path))
    (tmp_path / "set.csv").write_text("1,2\n", "utf-8")
    with pytest.raises(ScenarioError, match="unknown kind of file"):
        load(str(tmp_path / "set.csv"))


def write_csv(folder: Path, name: str, inputs: np.ndarray, labels: np.ndarray, column: str = "pixel") -> None:
    rows = [",".join(["label", *(f"{column}{i}" for i in range(inputs.shape[1]))])]
    rows += [",".join(map(str, [label, *row])) for label, row in zip(labels.tolist(), inputs.tolist(), strict=True)]
    (folder / name).write_text("\n".join(rows) + "\n")


def test_csv_folder(arrays, tmp_path: Path):
    flat = [arrays[0].reshape(30, -1), arrays[1], arrays[2].reshape(12, -1), arrays[3]]
    write_csv(tmp_path, "train.csv", flat[0], flat[1])
    write_csv(tmp_path, "test.csv", flat[2], flat[3])
    data = load(str(tmp_path))
    np.testing.assert_allclose(data.train_inputs, flat[0] / 255, rtol=1e-6)
    np.testing.assert_allclose(data.test_inputs, flat[2] / 255, rtol=1e-6)
    assert (data.test_labels == flat[3]).all()


def test_no_record_of_a_csv_file_decides_how_others_are_read(tmp_path: Path):
    """With and without a record whose values go beyond 127, the others are the same to the bit."""
    draw = np.random.default_rng(0)
    inputs, labels = draw.integers(0, 120, (20, 4)), draw.integers(0, 2, 20)
    inputs[7] = 255
    for column in ("pixel", "dose"):
        read = []
        for kept in (np.ones(20, bool), np.arange(20) != 7):
            write_csv(tmp_path, "train.csv", inputs[kept], labels[kept], column)
            write_csv(tmp_path, "test.csv", inputs[:5], labels[:5], column)
            read.append(load(str(tmp_path)).train_inputs)
        assert read[0].dtype == read[1].dtype
        assert np.array_equal(np.delete(read[0], 7, axis=0), read[1])


def test_csv_columns_go_by_name_and_small_numbers_stay_as_they_are(tmp_path: Path):
    (tmp_path / "train.csv").write_text("label,a,b\n0,0,1\n1,1,0\n")
    (tmp_path / "test.csv").write_text("b,label,a\n1,0,0\n0,1,1\n")
    data = load(str(tmp_path))
    assert data.test_inputs.tolist() == data.train_inputs.tolist() == [[0, 1], [1, 0]]
    assert data.train_inputs.dtype == np.float32


def test_csv_labels_may_be_names_that_the_scenario_lists(tmp_path: Path):
    (tmp_path / "train.csv").write_text("label,a\nwalk,1\nsit,2\nwalk,3\n")
    (tmp_path / "test.csv").write_text("label,a\nsit,1\n")
    data = load(str(tmp_path), ("sit", "lie", "walk"))
    assert data.train_labels.tolist() == [2, 0, 2] and data.test_labels.tolist() == [0]
    with pytest.raises(ScenarioError, match=r"column 'label' holds string; .* names that data\.classes lists"):
        load(str(tmp_path))
    with pytest.raises(ScenarioError, match=r"train.csv: label 'walk' is not in data.classes; did you mean 'walks'\?"):
        load(str(tmp_path), ("sit", "walks"))


def test_numbers_can_be_names_of_classes(tmp_path: Path):
    """Whatever one record's label looks like, the labels of all others are read as the same classes."""
    (tmp_path / "test.csv").write_text("label,a\n3,1\n")
    for last in ("7", "x", ""):
        (tmp_path / "train.csv").write_text(f"label,a\n7,1\n3,2\n{last},3\n")
        assert load(str(tmp_path), ("3", "7"), strict=False).train_labels.tolist()[:2] == [1, 0]


def test_a_name_that_nobody_listed_does_not_stop_a_device_with_its_own_data(tmp_path: Path):
    (tmp_path / "train.csv").write_text("label,a\nsit,1\nfly,2\n")
    (tmp_path / "test.csv").write_text("label,a\nsit,1\n")
    named = ['data.classes=["sit", "walk"]', f"data.source={tmp_path}"]
    own = ['data.partition={law="own"}', "data.samples_per_device=2"]
    assert load_for(load_scenario("small", [*named, *own]).data).train_labels.tolist() == [0, 2]
    with pytest.raises(ScenarioError, match=r"label 'fly' is not in data\.classes"):
        load_for(load_scenario("small", named).data)
    with pytest.raises(ScenarioError, match="names 'sit' twice"):
        load_scenario("small", ['data.classes=["sit", "sit"]'])


def test_users_of_an_npz_file(arrays, tmp_path: Path):
    names = ("train_images", "train_labels", "test_images", "test_labels")
    held = dict(zip(names, arrays, strict=True))
    users = np.arange(30) % 3
    np.savez(tmp_path / "set.npz", **held, train_users=users)
    read = load(str(tmp_path / "set.npz")).users
    assert read is not None and read.tolist() == users.tolist()
    for wrong in (users[:5], users * 0.5):
        np.savez(tmp_path / "set.npz", **held, train_users=wrong)
        with pytest.raises(ScenarioError, match="give a whole number per training sample"):
            load(str(tmp_path / "set.npz"))


def test_only_bytes_are_scaled():
    inputs = np.array([[0, 255]])
    assert scaled(jnp.asarray(inputs, jnp.uint8)).tolist() == [[0.0, 1.0]]
    assert scaled(jnp.asarray(inputs, jnp.int32)).tolist() == [[0.0, 255.0]]


@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY" + bytes(80)])
def test_unreadable_npz_is_one_line(content, tmp_path: Path):
    (tmp_path / "set.npz").write_bytes(content)
    with pytest.raises(ScenarioError, match="not a readable") as error:
        load(str(tmp_path / "set.npz"))
    assert "\n" not in str(error.value)
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(ScenarioError, match="not a readable"):
        load(str(tmp_path / "one.npz"))


@pytest.mark.parametrize(
    ("train", "said"),
    [
        ("a,b\n1,2\n", "no column 'label'"),
        ("label,a\n1,x\n", "give numbers"),
        ("label,a\n1.5,2\n", "classes 0, 1"),
        ("label,a\n1,\n2,3\n", "empty cells"),
        ("label,a\n", "no samples"),
        ("label\n1\n", "no inputs"),
        ("", "not a readable CSV"),
        ("label,a,b\n1,2,3\n", "make them equal"),
        ("label,b\n1,2\n", "in only one of"),
        ("label,a,a\n1,2,3\n", "the same name"),
    ],
)
def test_bad_csv_is_refused_in_one_line(train, said, tmp_path: Path):
    (tmp_path / "train.csv").write_text(train)
    (tmp_path / "test.csv").write_text("label,a\n1,2\n")
    with pytest.raises(ScenarioError, match=said) as error:
        load(str(tmp_path))
    assert "\n" not in str(error.value)


def test_hugging_face_set_from_local_files(arrays, tmp_path: Path, monkeypatch):
    """The hub's own library reads Parquet files from a folder, without a network."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "set"
    folder.mkdir()
    for split, inputs, labels in (("train", *arrays[:2]), ("test", *arrays[2:])):
        columns = {"image": [row.astype(np.uint8).tolist() for row in inputs], "label": labels.tolist()}
        datasets.Dataset.from_dict(columns).to_parquet(folder / f"{split}.parquet")
    data = load(f"hf:{folder}")
    assert (data.train_inputs == arrays[0]).all() and (data.test_labels == arrays[3]).all()


def test_hugging_face_errors_are_one_line(tmp_path: Path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "set"
    folder.mkdir()
    datasets.Dataset.from_dict({"text": ["a"], "label": [1]}).to_parquet(folder / "train.parquet")
    for source, said in (
        (f"hf:{tmp_path / 'nowhere'}", "cannot be loaded"),
        (f"hf:{folder}", "no column of inputs|no split"),
    ):
        with pytest.raises(ScenarioError, match=said) as error:
            load(source)
        assert "\n" not in str(error.value)
