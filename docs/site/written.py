"""Copy the written pages, with links that hold on the site.

A page may link to files of the repository that are no pages: examples, tables, source code. Each of them becomes a page
that shows the file, so that a reader of the site needs nothing else.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from docs.site.contents import DOCS, ELSEWHERE, PAGES, ROOT, source_of, written_pages

LINK = re.compile(r"(?<=\])\(([^)\s]+)\)|(?<=href=\")([^\"]+)|(?<=src=\")([^\"]+)")
FENCE = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)
SHOWN = {".py": "python", ".toml": "toml", ".csv": "text", ".json": "json", ".cff": "yaml", ".cu": "c", ".yml": "yaml"}
DIAGRAMS = '\n<script src="assets/mermaid/mermaid.tiny.js"></script>\n'
"""What draws diagrams; without it, the theme would load the same from another host."""
MOST_SHOWN = 200_000
"""Characters of a file above which it can only be downloaded."""


class BrokenLink(Exception):
    """A page links to what the repository does not have."""


def copy_written() -> None:
    """Write all pages and pictures of docs/ into the input of the site builder."""
    shutil.copytree(DOCS / "figures", PAGES / "figures", dirs_exist_ok=True)
    for page in ["index.md", *written_pages()]:
        source = source_of(page)
        target = PAGES / page
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _with_links(source.read_text("utf-8"), source, page)
        target.write_text(text + DIAGRAMS if "```mermaid" in text else text, "utf-8")


def _with_links(text: str, source: Path, page: str) -> str:
    """The text of a page with its links, those within code left alone."""
    parts = FENCE.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = LINK.sub(lambda found: _replaced(found, source, page), parts[place])
    return "".join(parts)


def _replaced(found: re.Match[str], source: Path, page: str) -> str:
    old = found[1] or found[2] or found[3]
    new = _on_site(old, source, page)
    return f"({new})" if found[1] else new


def _on_site(link: str, source: Path, page: str) -> str:
    """Where a link of a page leads on the site."""
    path, hash_sign, anchor = link.partition("#")
    if not path or re.match(r"[a-z]+:", path) or path.startswith(("tutorials/", "reference/")):
        return link
    place = (source.parent / path).resolve()
    if not place.exists() or not place.is_relative_to(ROOT):
        raise BrokenLink(f"{source.relative_to(ROOT)}: links to '{path}', which does not exist; correct the link")
    within = place.relative_to(ROOT).as_posix()
    if within == "README.md":
        new = "index.md"
    elif within in ELSEWHERE:
        new = ELSEWHERE[within]
    elif place.is_relative_to(DOCS) and place.suffix in (".md", ".svg", ".png"):
        new = place.relative_to(DOCS).as_posix()
    else:
        new = shown_file(place)
    return os.path.relpath(new, Path(page).parent or ".") + hash_sign + anchor


def shown_file(place: Path) -> str:
    """The page that shows a file of the repository, or lists a folder; it is written at the first call."""
    within = place.relative_to(ROOT).as_posix()
    page = f"files/{within}.md"
    target = PAGES / page
    if target.exists():
        return page
    target.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        files = [each for each in sorted(place.iterdir()) if each.suffix in SHOWN]
        links = [
            f"- [{each.name}]({os.path.relpath(shown_file(each), target.parent.relative_to(PAGES))})" for each in files
        ]
        target.write_text(
            f"# {within}\n\nThis folder of the repository holds these files.\n\n" + "\n".join(links) + "\n", "utf-8"
        )
        return page
    shutil.copyfile(place, target.with_name(place.name))
    text = place.read_text("utf-8")
    body = f"# {within}\n\nThis is the file `{within}` of the repository ([download]({place.name})).\n"
    if len(text) <= MOST_SHOWN:
        fence = "`" * (1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=2))
        body += f"\n{fence}{SHOWN.get(place.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"
    target.write_text(body, "utf-8")
    return page
