"""`fairwave data`: what is listed, and that what goes wrong is one line with a true exit code. Nothing is fetched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.end_to_end.command_line import fairwave
from tests.unit.data.published_files import clothes


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FAIRWAVE_DATA", str(folder))
    monkeypatch.setenv("PATH", str(tmp_path))  # no client of any registry
    return folder


def test_the_list_says_what_is_here_and_under_which_licence(capsys, monkeypatch, cache: Path):
    cache.mkdir()
    (cache / "cifar10.npz").write_bytes(b"")
    done = fairwave(capsys, monkeypatch, "data", "list")
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", done.out)]
    assert done.code == 0 and entries[0].startswith("mnist ")
    assert any(entry.startswith("cifar10 ") and "(here) licence: " in entry for entry in entries)
    assert any(entry.startswith("har ") and "(not here) licence: " in entry for entry in entries)
    assert "licence: MIT (Zalando SE)" in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("get", "cifar"), 2, "unknown data set 'cifar'; did you mean 'cifar10'?"),
        (("get", "mnist"), 2, "needs no files"),
        (("get", "cifar10"), 2, "'npm' cannot be started"),
        (("get", "fashion-mnist"), 2, "fairwave data add fashion-mnist FILES"),
        (("add", "har", "nowhere"), 2, "No such file"),
        (("add", "har"), 2, "Missing argument"),
    ],
)
def test_errors_are_one_line(arguments, code, said, capsys, monkeypatch, cache: Path):
    done = fairwave(capsys, monkeypatch, "data", *arguments)
    assert done.code == code and said in done.err and "Traceback" not in done.err
    assert not cache.exists() or not list(cache.iterdir())


def test_files_of_another_edition_are_refused(capsys, monkeypatch, tmp_path: Path):
    for name, content in clothes()[0].items():
        (tmp_path / name).write_bytes(content)
    done = fairwave(capsys, monkeypatch, "data", "add", "fashion-mnist", str(tmp_path))
    assert done.code == 2 and "its digest differs" in done.err and done.err.count("\n") == 2  # the licence comes first


def test_a_run_without_its_data_says_how_to_get_them(capsys, monkeypatch, tmp_path: Path):
    arguments = ("run", "small", "--out", str(tmp_path / "run"), "--set", "data.source=cifar10")
    done = fairwave(capsys, monkeypatch, *arguments)
    assert done.code == 2 and "fairwave data get cifar10" in done.err and "fairwave data add cifar10 FILES" in done.err
