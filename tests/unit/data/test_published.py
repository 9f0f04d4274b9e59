from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from fairwave.data.cifar10 import cifar10
from fairwave.data.data_cache import cache_folder, cached_file, digest_of
from fairwave.data.fashion_mnist import fashion_mnist
from fairwave.data.har import har
from fairwave.data.package_clients import Package
from fairwave.data.published_data import PublishedData
from fairwave.errors import OutputError, ScenarioError
from tests.unit.data.published_files import Hostile, array, clothes, deb, pickled, table, tar

FILES, ARRAYS = clothes()
PARTS = ("train_images", "train_labels", "test_images", "test_labels")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FAIRWAVE_DATA", str(folder))
    return folder


def small(published: PublishedData, arrays: dict[str, np.ndarray], package: Package | None = None) -> PublishedData:
    """The same set, known by the digest of a test's own files."""
    return dataclasses.replace(published, digest=digest_of(arrays), package=package or published.package)


CLOTHES = small(fashion_mnist, ARRAYS)


def folder_of(files: dict[str, bytes], place: Path) -> Path:
    place.mkdir()
    for name, content in files.items():
        (place / name).write_bytes(content)
    return place


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_where_data_are_kept(monkeypatch, tmp_path: Path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("FAIRWAVE_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fairwave" / "data"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "fairwave" / "data"


def test_the_digest_is_of_names_types_shapes_and_values():
    """Worked by hand for one array; every change of it gives another."""
    values = np.arange(6, dtype=np.uint8).reshape(2, 3)
    assert digest_of({"x": values}) == hashlib.sha256(b"x |u1 (2, 3)\n" + bytes(range(6))).hexdigest()
    others = [{"y": values}, {"x": values.T}, {"x": values.ravel()}, {"x": values.view(np.int8)}, {"x": values + 1}]
    assert len({digest_of(each) for each in [{"x": values}, *others]}) == 6
    assert digest_of({"x": values[:, ::-1]}) == digest_of({"x": values[:, ::-1].copy()})


def test_files_by_hand_are_kept_and_loaded(cache: Path, tmp_path: Path):
    path = CLOTHES.add([folder_of(FILES, tmp_path / "given")])
    assert path == cached_file("fashion-mnist") and names_in(cache) == ["fashion-mnist.npz"]
    data = CLOTHES.load()
    assert np.array_equal(data.train_inputs, ARRAYS["train_images"]) and data.users is None
    assert np.array_equal(data.test_labels, ARRAYS["test_labels"])


def test_a_set_that_is_not_here_says_how_to_get_it():
    with pytest.raises(ScenarioError, match=r"run 'fairwave data get har', or .* fairwave data add har FILES"):
        har.load()


@pytest.mark.parametrize("damage", ["cut", "one value", "no file of this kind", "other arrays"])
def test_a_damaged_cache_is_refused(damage: str, tmp_path: Path):
    path = CLOTHES.add([folder_of(FILES, tmp_path / "given")])
    content = path.read_bytes()
    match damage:
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "one value":
            changed = dict(ARRAYS) | {"train_labels": ARRAYS["train_labels"] ^ 1}
            np.savez(path, **changed)
        case "no file of this kind":
            path.write_bytes(b"no")
        case "other arrays":
            np.savez(path, x=np.zeros(3))
    with pytest.raises(ScenarioError, match="damaged, not the published 'fashion-mnist'; run 'fairwave data get"):
        CLOTHES.load()


def test_other_files_under_the_same_names_are_refused(cache: Path, tmp_path: Path):
    given = folder_of(FILES, tmp_path / "given")
    with pytest.raises(ScenarioError, match="its digest differs"):
        fashion_mnist.add([given])
    assert not cache.exists()


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(cache: Path, tmp_path: Path, monkeypatch):
    given = folder_of(FILES, tmp_path / "given")
    before = CLOTHES.add([given]).read_bytes()

    def interrupted(stream, **_):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        CLOTHES.add([given])
    assert names_in(cache) == ["fashion-mnist.npz"] and cached_file("fashion-mnist").read_bytes() == before


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FAIRWAVE_DATA", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="name another folder in FAIRWAVE_DATA"):
        CLOTHES.add([folder_of(FILES, tmp_path / "given")])


def batches() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Six batches of pictures with colours first, as CIFAR-10 has them, and their classes."""
    draw = np.random.default_rng(1)
    return [draw.integers(0, 256, (4, 3, 32, 32), np.uint8) for _ in range(6)], [
        draw.integers(0, 10, 4, np.uint8) for _ in range(6)
    ]


def png(pictures: np.ndarray) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    rows = [[picture[:, y, x] for y in range(32) for x in range(32)] for picture in pictures]
    Image.fromarray(np.array(rows)).save(buffer, "PNG")
    return buffer.getvalue()


NAMES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def cifar_files(form: str) -> dict[str, bytes]:
    pictures, labels = batches()
    if form == "pickle":
        held = [
            {b"batch_label": b"one", b"labels": each.tolist(), b"data": array(of.reshape(4, -1))}
            for of, each in zip(pictures, labels, strict=True)
        ]
        return {name: pickled(each, by_python_2=True) for name, each in zip(NAMES, held, strict=True)}
    if form == "bin":
        records = [
            b"".join(bytes([label]) + picture.tobytes() for label, picture in zip(each, of, strict=True))
            for of, each in zip(pictures, labels, strict=True)
        ]
        return {f"{name}.bin": each for name, each in zip(NAMES, records, strict=True)}
    files = {f"{name}.png": png(of) for name, of in zip(NAMES, pictures, strict=True)}
    files["train_lables.json"] = json.dumps(np.concatenate(labels[:5]).tolist()).encode()
    return files | {"test_lables.json": json.dumps(labels[5].tolist()).encode()}


@pytest.mark.parametrize("form", ["pickle", "bin", "png"])
def test_all_formats_of_cifar_give_the_same_arrays(form: str):
    pictures, labels = batches()
    arrays = cifar10.convert(cifar_files(form))
    assert arrays["train_images"].shape == (20, 32, 32, 3) and arrays["test_images"].dtype == np.uint8
    for number in range(20):
        batch, place = divmod(number, 4)
        for colour in range(3):
            assert np.array_equal(arrays["train_images"][number, :, :, colour], pictures[batch][place, colour])
    assert np.array_equal(arrays["train_labels"], np.concatenate(labels[:5]))
    assert np.array_equal(arrays["test_images"][3, :, :, 1], pictures[5][3, 1])
    assert np.array_equal(arrays["test_labels"], labels[5]) and arrays["test_labels"].dtype == np.uint8
    assert digest_of(arrays) == digest_of(cifar10.convert(cifar_files("bin")))


@pytest.mark.parametrize(
    ("form", "name", "content", "said"),
    [
        ("pickle", "data_batch_3", None, "no file data_batch_3 among"),
        ("pickle", "test_batch", None, "give all batches"),
        ("pickle", "test_batch", pickled({b"labels": [1]}, by_python_2=True), "not a batch of CIFAR-10"),
        ("pickle", "test_batch", pickled([1], by_python_2=True), "not a batch of CIFAR-10"),
        ("bin", "data_batch_1.bin", b"12", "not whole records of 3073"),
        ("png", "data_batch_1.png", b"no picture", "not a readable PNG"),
        ("png", "data_batch_1.png", png(batches()[0][0])[:-200], "not a readable PNG"),
        ("png", "train_lables.json", None, "no file train_lables.json"),
        ("png", "test_lables.json", b"{", "not a list of classes"),
        ("png", "test_lables.json", b"[-1]", "not a list of classes"),
    ],
)
def test_bad_files_of_cifar_are_one_line(form, name, content, said):
    files = cifar_files(form)
    files.pop(name)
    with pytest.raises(ScenarioError, match=said) as error:
        cifar10.convert(files if content is None else files | {name: content})
    assert "\n" not in str(error.value)


def test_a_hostile_batch_does_not_run(tmp_path: Path):
    import pickle

    marker = tmp_path / "ran"
    files = cifar_files("pickle") | {"data_batch_1": pickle.dumps({b"data": Hostile(marker)}, 2)}
    with pytest.raises(ScenarioError, match="it asks for"):
        small(cifar10, {}).add([folder_of(files, tmp_path / "given")])
    assert not marker.exists()


def recordings() -> dict[int, list[tuple[np.ndarray, np.ndarray]]]:
    """Two people: long stretches of some activities, transitions (7) and samples without a label (-1) in between."""
    draw = np.random.default_rng(2)
    stretches = {
        4: [[(-1, 100), (5, 1400), (7, 90), (4, 700), (1, 100)], [(5, 900)]],
        2: [[(6, 128), (-1, 64), (3, 1000)]],
    }
    return {
        person: [
            (draw.normal(size=(sum(n for _, n in parts), 6)), np.repeat([v for v, _ in parts], [n for _, n in parts]))
            for parts in each
        ]
        for person, each in stretches.items()
    }


def test_sensor_windows_against_a_plain_loop():
    held = recordings()
    tables = {person: [table(values, labels) for values, labels in each] for person, each in held.items()}
    arrays = har.convert({"HAPT.pkl.gz": gzip.compress(pickled(tables))})
    expected: dict[str, list] = {"train": [], "test": []}
    for person in (2, 4):
        windows = []
        for number, (values, labels) in enumerate(held[person]):
            for start in range(0, len(labels) - 127, 64):
                inside = set(labels[start : start + 128].tolist())
                if len(inside) == 1 and inside <= {1, 2, 3, 4, 5, 6}:
                    windows.append((number, start, inside.pop(), values[start : start + 128]))
        for place, (number, start, label, values) in enumerate(windows):
            later = [each for each in windows[place + 1 :] if each[2] == label]
            test = len(later) < sum(each[2] == label for each in windows) // 5
            near = [each for each in later if each[0] == number and each[1] < start + 128]
            overlaps = near and len(later) - 1 < sum(each[2] == label for each in windows) // 5
            if test or not overlaps:
                expected["test" if test else "train"].append((person, label - 1, values.astype(np.float32)))
    for part, rows in expected.items():
        assert np.array_equal(arrays[f"{part}_images"], np.stack([values for _, _, values in rows]))
        assert arrays[f"{part}_labels"].tolist() == [label for _, label, _ in rows]
    assert arrays["train_users"].tolist() == [person for person, _, _ in expected["train"]]
    assert len(expected["test"]) >= 8 and set(arrays["train_users"].tolist()) == {2, 4}


def test_no_sample_of_a_person_is_in_both_parts():
    held = {1: [(np.arange(6.0 * 3000).reshape(3000, 6), np.full(3000, 2))]}
    arrays = har.convert({"HAPT.pkl": pickled({1: [table(*held[1][0])]})})
    assert not np.intersect1d(arrays["train_images"], arrays["test_images"]).size
    assert arrays["train_images"].max() < arrays["test_images"].min()


def test_users_are_kept_with_the_data(tmp_path: Path):
    tables = {person: [table(*each) for each in of] for person, of in recordings().items()}
    given = folder_of({"HAPT.pkl.gz": gzip.compress(pickled(tables))}, tmp_path / "given")
    arrays = har.convert({"HAPT.pkl": pickled(tables)})
    of_two = small(har, arrays)
    of_two.add([given])
    users = of_two.load().users
    assert users is not None and users.tolist() == arrays["train_users"].tolist()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "no file HAPT.pkl.gz or HAPT.pkl"),
        ({"HAPT.pkl.gz": b"no"}, "not the recordings"),
        ({"HAPT.pkl": b"no"}, "not a pickle of arrays"),
        ({"HAPT.pkl": pickled({})}, "no recordings"),
        ({"HAPT.pkl": pickled([1])}, "not the recordings"),
        ({"HAPT.pkl": pickled({1: [3]})}, "not the recordings"),
        ({"HAPT.pkl": pickled({1: [table(np.zeros((9, 5)), np.zeros(9, int))]})}, "not the recordings"),
    ],
)
def test_bad_recordings_are_one_line(files, said):
    with pytest.raises(ScenarioError, match=said) as error:
        har.convert(files)
    assert "\n" not in str(error.value)


def client(place: Path, script: str) -> Path:
    """A program in the place of a registry's client."""
    place.parent.mkdir(exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    place.chmod(0o755)
    return place


def packages(tmp_path: Path) -> dict[str, tuple[Package, str]]:
    """For each client a package with the four files, and what its registry calls the archive."""
    packed = tar({f"package/{name}": content for name, content in FILES.items()})
    debian = deb({f"./usr/share/{name}": content for name, content in FILES.items()})
    known = hashlib.sha256(packed).hexdigest()
    made = {
        "npm": (Package("npm", "clothes", "1.0", known), "clothes-1.0.tgz", packed),
        "pip": (Package("pip", "clothes", "1.0", known), "clothes-1.0.tar.gz", packed),
        "apt-get": (Package("apt-get", "clothes"), "clothes_1.0_all.deb", debian),
    }
    (tmp_path / "registry").mkdir()
    for _, name, content in made.values():
        (tmp_path / "registry" / name).write_bytes(content)
    return {kind: (package, name) for kind, (package, name, _) in made.items()}


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("npm", "pack --ignore-scripts clothes@1.0"),
        ("pip", "-m pip download --no-deps --no-binary clothes --require-hashes -r"),
        ("apt-get", "download clothes"),
    ],
)
def test_packages_are_fetched_with_the_client_of_their_registry(kind, asked, cache, tmp_path: Path, monkeypatch):
    package, name = packages(tmp_path)[kind]
    script = f'echo "$@" > {tmp_path}/asked\ncat wanted.txt >> {tmp_path}/asked 2>&-\ncp {tmp_path}/registry/{name} .'
    program = client(tmp_path / "bin" / kind, script)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    wanted = small(fashion_mnist, ARRAYS, package)
    wanted.get()
    said = (tmp_path / "asked").read_text()
    assert said.startswith(asked) and (kind != "pip" or f"clothes==1.0 --hash=sha256:{package.sha256}" in said)
    assert names_in(cache) == ["fashion-mnist.npz"]
    assert np.array_equal(wanted.load().train_inputs, ARRAYS["train_images"])


@pytest.mark.parametrize(
    ("kind", "script", "said"),
    [
        ("npm", "echo 'npm error code ENOTFOUND' >&2; echo 'npm error more' >&2; exit 1", "npm error code ENOTFOUND"),
        ("pip", "echo 'ERROR: first' >&2; echo 'ERROR: no such version' >&2; exit 1", "ERROR: no such version"),
        ("apt-get", "echo 'E: Unable to locate package clothes' >&2; exit 100", "E: Unable to locate"),
        ("apt-get", "exit 3", "exit code 3"),
        ("npm", "echo nothing came", "nothing came"),
        ("npm", "echo damaged > clothes-1.0.tgz", "damaged, or not what was published"),
        ("apt-get", "echo damaged > clothes_1.0_all.deb", "cannot be read"),
        ("npm", None, "'npm' cannot be started"),
    ],
)
def test_what_cannot_be_fetched_is_one_line_and_leaves_nothing(kind, script, said, cache, tmp_path: Path, monkeypatch):
    package, _ = packages(tmp_path)[kind]
    if script is not None:
        monkeypatch.setattr(sys, "executable", str(client(tmp_path / "bin" / kind, script)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ScenarioError) as error:
        small(fashion_mnist, ARRAYS, package).get()
    assert said in str(error.value) and "\n" not in str(error.value)
    assert "fairwave data add fashion-mnist FILES" in str(error.value) or "download it again" in str(error.value)
    assert names_in(cache) == []


def test_what_the_package_publishes_is_pinned():
    for published in (fashion_mnist, cifar10, har):
        assert len(published.digest) == 64 and published.licence and published.summary
        assert published.package.sha256 is not None or published.package.client == "apt-get"
