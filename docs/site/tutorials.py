"""Add the tutorials to the site, if they have been exported as HTML pages."""

from __future__ import annotations

import re
import shutil

from docs.site.contents import BUILD, DOCS, PAGES
from docs.site.written import shown_file

EXPORTED = BUILD / "tutorials"
LINK = re.compile(r"\[([^\]]+)\]\(tutorials/([\w-]+)\.py\)")


def add_exported() -> None:
    """Copy exported tutorials, and make the list of tutorials link to those that are there."""
    exported = {path.stem for path in EXPORTED.glob("*.html")} if EXPORTED.is_dir() else set()
    if exported:
        shutil.copytree(EXPORTED, PAGES / "tutorials", dirs_exist_ok=True)
    page = PAGES / "tutorials.md"
    text = LINK.sub(lambda found: _linked(found, exported), page.read_text("utf-8"))
    page.write_text(text, "utf-8")


def _linked(found: re.Match[str], exported: set[str]) -> str:
    """A link to the exported page, or else to the page that shows the notebook."""
    title, name = found[1], found[2]
    target = f"tutorials/{name}.html" if name in exported else shown_file(DOCS / "tutorials" / f"{name}.py")
    return f"[{title}]({target})"
