"""Check the built site: every link and anchor leads somewhere, and nothing is loaded from another host."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("object", "data")}
NO_PLACE = ("mailto:", "javascript:", "data:")
IN_STYLES = re.compile(r"(?:url\(|@import )\s*['\"]?(https?:)?//")


class Page(HTMLParser):
    """What a page refers to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchors and references of one element."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            if value and name in ("href", "src", "data") and not (tag == "link" and ("rel", "canonical") in attrs):
                (self.loaded if (tag, name) in LOADED else self.links).append(value)


def problems(site: Path) -> list[str]:
    """One line for each broken link and each file that would be loaded from another host."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site).as_posix()
        found += [f"{where}: loads '{url}' from another host" for url in page.loaded if _is_elsewhere(url)]
        for link in dict.fromkeys((*page.links, *page.loaded)):
            complaint = _complaint(link, path, pages, site)
            if complaint:
                found.append(f"{where}: '{link}' {complaint}")
    for path in sorted(site.rglob("*.css")):
        if IN_STYLES.search(path.read_text("utf-8")):
            found.append(f"{path.relative_to(site)}: a style sheet loads from another host")
    return found


def _is_elsewhere(url: str) -> bool:
    return bool(urlsplit(url).netloc)


def _complaint(link: str, path: Path, pages: dict[Path, Page], site: Path) -> str:
    """What is wrong with a link within the site, or nothing."""
    if _is_elsewhere(link) or link.startswith(NO_PLACE):
        return ""
    parts = urlsplit(link)
    if parts.path.startswith("/"):
        return "is absolute, and a site may lie in any folder"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_relative_to(site.resolve()) or not target.exists():
        return "leads to no file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors and not anchor.startswith("__"):
        return "leads to no anchor"
    return ""
