"""Which pages the site has, and in what order: tutorials, how-to guides, reference, explanation."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BUILD = ROOT / "build"
PAGES, SITE = BUILD / "pages", BUILD / "site"

Section: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]

WRITTEN: tuple[Section, ...] = (
    (
        "Tutorials",
        (
            ("All tutorials", "tutorials.md"),
            ("Getting started", "getting_started.md"),
        ),
    ),
    (
        "How-to guides",
        (
            ("Plan a fleet", "plan.md"),
            ("Use your own data", "data.md"),
            ("Choose and use models", "models_and_results.md"),
            ("Make devices differ", "heterogeneity.md"),
            ("Run a sweep", "sweeps.md"),
            ("Read reports", "reports.md"),
            ("Watch runs in a browser", "ui.md"),
            ("Train privately", "private_learning.md"),
            ("Audit privacy", "audit.md"),
            ("Federate real machines", "federate.md"),
            ("Run in containers", "containers.md"),
            ("Extend fairwave", "extending.md"),
            ("Contribute", "contributing.md"),
        ),
    ),
    (
        "Explanation",
        (
            ("Architecture", "architecture.md"),
            ("How the paper is read", "equations.md"),
            ("Schemes", "schemes.md"),
            ("Privacy", "privacy.md"),
            ("Adversaries and defences", "adversaries.md"),
            ("Incentives", "incentives.md"),
            ("Contribution scores", "contribution.md"),
            ("Reproduction of the paper", "reproduction.md"),
            ("Search over readings", "search.md"),
            ("Benchmarks", "benchmarks.md"),
            ("External numbers", "external.md"),
        ),
    ),
)
"""Pages with their titles in the navigation. The reference is generated, apart from the pages in REFERENCE_WRITTEN."""

REFERENCE_WRITTEN = (
    ("Commands in brief", "commands.md"),
    ("Wire format", "wire.md"),
    ("Glossary", "glossary.md"),
    ("Stability", "stability.md"),
    ("Security", "security.md"),
    ("Changelog", "changelog.md"),
)

ELSEWHERE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
"""Pages of the site that are kept at the root of the repository."""


def source_of(page: str) -> Path:
    """The tracked file of a written page."""
    kept = {name: place for place, name in ELSEWHERE.items()}
    return ROOT / kept[page] if page in kept else DOCS / page


def written_pages() -> list[str]:
    """Every page of the navigation that is written by hand and exists, apart from the front page."""
    named = [page for _, pages in WRITTEN for _, page in pages] + [page for _, page in REFERENCE_WRITTEN]
    return [page for page in named if source_of(page).exists()]


def navigation(generated: tuple[tuple[str, str], ...]) -> list[dict[str, object]]:
    """The navigation as Zensical reads it; generated pages come first in the reference."""
    there = set(written_pages())
    sections = [(title, [(name, page) for name, page in pages if page in there]) for title, pages in WRITTEN]
    reference = [*generated, *((name, page) for name, page in REFERENCE_WRITTEN if page in there)]
    sections.insert(2, ("Reference", reference))
    nav: list[dict[str, object]] = [{"Home": "index.md"}]
    return nav + [{title: [{name: page} for name, page in pages]} for title, pages in sections]
