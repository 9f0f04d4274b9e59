"""A release says the same about itself in every file."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## (?P<version>\S+) - (?P<date>\S+)$", re.MULTILINE)


def _metadata() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def test_changelog_and_citation_name_the_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = HEADING.search(changelog)
    assert newest is not None
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert newest["version"] == _metadata()["version"] == citation["version"]
    assert datetime.date.fromisoformat(newest["date"]) == citation["date-released"]


def test_changelog_has_a_place_for_what_comes_next():
    headings = re.findall(r"^## .*$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "## Unreleased"
    assert all(HEADING.match(heading) for heading in headings[1:])


def test_changelog_has_known_kinds_of_changes_only():
    kinds = re.findall(r"^### (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Results"}
