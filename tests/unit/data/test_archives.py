from __future__ import annotations

from pathlib import Path

import pytest

from fairwave.data.archives import collect
from fairwave.errors import ScenarioError
from tests.unit.data.published_files import deb, tar

WANTED = frozenset({"a.bin", "b.bin"})
FILES = {"./usr/share/a.bin": b"first" * 1000, "package/b.bin": b"second", "package/other": b"not wanted"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("set.tgz", tar(FILES)),
        ("set-1.0.tar.gz", tar(FILES)),
        ("set.tar.xz", tar(FILES, "xz")),
        ("set.deb", deb(FILES)),
        ("set.deb", deb(FILES, "gz")),
        ("set.deb", deb(FILES, "zst")),
    ],
    ids=["tgz", "tar.gz", "tar.xz", "deb xz", "deb gz", "deb zst"],
)
def test_wanted_members_are_read_and_nothing_is_written(name, content, tmp_path: Path):
    (tmp_path / name).write_bytes(content)
    assert collect([tmp_path / name], WANTED) == {"a.bin": b"first" * 1000, "b.bin": b"second"}
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_folders_and_files(tmp_path: Path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.bin").write_bytes(b"1")
    (tmp_path / "b.bin").write_bytes(b"2")
    assert collect([tmp_path], WANTED) == {"a.bin": b"1", "b.bin": b"2"}
    assert collect([tmp_path / "b.bin"], WANTED) == {"b.bin": b"2"}
    (tmp_path / "deep" / "b.bin").write_bytes(b"3")
    with pytest.raises(ScenarioError, match="twice, and they differ"):
        collect([tmp_path], WANTED)


@pytest.mark.parametrize("pack", [tar, deb])
@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"../a.bin": b"x"}, "points out of the archive"),
        ({"a/../../b.bin": b"x"}, "points out of the archive"),
        ({"/tmp/a.bin": b"x"}, "points out of the archive"),
        ({"../unwanted": b"x"}, "points out of the archive"),
        ({"a.bin": None}, "no plain file"),
    ],
)
def test_archives_that_reach_outside_are_refused(pack, members, said, tmp_path: Path):
    path = tmp_path / ("set.tgz" if pack is tar else "set.deb")
    path.write_bytes(pack(members))
    with pytest.raises(ScenarioError, match=said):
        collect([path], WANTED)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_member_beyond_the_usual_size_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("fairwave.data.archives.MOST_BYTES", 100)
    (tmp_path / "set.tgz").write_bytes(tar(FILES))
    with pytest.raises(ScenarioError, match="usual size"):
        collect([tmp_path / "set.tgz"], WANTED)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("set.tgz", b""),
        ("set.tgz", tar(FILES)[:60]),
        ("set.tgz", tar(FILES)[:120]),
        ("set.tgz", b"\x1f\x8b but no"),
        ("set.deb", b"!<arch>\n"),
        ("set.deb", b"no package"),
        ("set.deb", deb(FILES)[:-200]),
        ("set.deb", deb(FILES)[:90]),
        ("set.deb", deb(FILES, "zst")[:-50]),
    ],
    ids=range(9),  # archives hold the time at which they were made, and names must be the same in every process
)
def test_damaged_archives_are_one_line(name, content, tmp_path: Path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ScenarioError, match="download it again") as error:
        collect([tmp_path / name], WANTED)
    assert "\n" not in str(error.value)


def test_files_that_are_not_of_the_set(tmp_path: Path):
    with pytest.raises(ScenarioError, match="No such file"):
        collect([tmp_path / "nowhere"], WANTED)
    (tmp_path / "c.bin").write_bytes(b"")
    with pytest.raises(ScenarioError, match=r"not a file of this data set; give a\.bin, b\.bin"):
        collect([tmp_path / "c.bin"], WANTED)
