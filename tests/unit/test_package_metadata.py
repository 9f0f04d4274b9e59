"""Addresses of a package: none until a home is known, and absolute ones then."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from trove_classifiers import classifiers

ROOT = Path(__file__).parents[2]
HOME = "https://forge.example/people/fairwave"


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _described(hooks: ModuleType) -> dict[str, Any]:
    metadata: dict[str, Any] = {"version": "0.2.0"}
    hooks.Metadata(str(ROOT), {}).update(metadata)
    return metadata


def test_without_a_home_no_address(hooks: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(hooks.HOME, raising=False)
    described = _described(hooks)
    assert "urls" not in described
    assert described["readme"]["text"] == (ROOT / "README.md").read_text("utf-8")


def test_with_a_home_every_link_of_the_readme_is_absolute(hooks: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(hooks.HOME, f"{HOME}/")
    described = _described(hooks)
    assert described["urls"]["Homepage"] == HOME
    assert described["urls"]["Changelog"] == f"{HOME}/blob/v0.2.0/CHANGELOG.md"
    text = described["readme"]["text"]
    assert f"({HOME}/blob/v0.2.0/CITATION.cff)" in text
    assert [link[0] for link in hooks._LINK.finditer(text) if (ROOT / link["path"]).exists()] == []


def test_images_come_from_the_raw_file_and_other_links_stay(hooks: ModuleType):
    text = (
        '![A](docs/figures/energy.svg) <img alt="b" src="docs/figures/energy.svg"> [c](docs/wire.md#rounds) [d](#start)'
    )
    raw, page = f"{HOME}/raw/v1/docs/figures/energy.svg", f"{HOME}/blob/v1/docs/wire.md#rounds"
    wanted = f'![A]({raw}) <img alt="b" src="{raw}"> [c]({page}) [d](#start)'
    assert hooks.absolute(text, HOME, "v1", ROOT) == wanted
    elsewhere = "[paper](https://arxiv.org/abs/2109.05267) [gone](docs/none.md)"
    assert hooks.absolute(elsewhere, HOME, "v1", ROOT) == elsewhere


def test_a_home_that_is_none_is_refused(hooks: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(hooks.HOME, "forge.example")
    with pytest.raises(ValueError, match=r"'forge\.example' is not the address of a repository"):
        _described(hooks)


def test_classifiers_are_known_ones():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(project["classifiers"]) <= classifiers
