"""`python -m docs.site` (or `make docs`): write all pages, build the site, and check it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib

import tomli_w
from docs.site import api, command_line, equations, readability, registries, scenario_keys, tutorials
from docs.site.contents import BUILD, DOCS, PAGES, SITE, navigation
from docs.site.links import problems
from docs.site.written import BrokenLink, copy_written

GENERATED = {
    "reference/scenario.md": ("Scenario keys", scenario_keys.page),
    "reference/cli.md": ("Command line", command_line.page),
    "reference/names.md": ("Names", registries.page),
    "reference/api.md": ("Python interface", api.page),
    "reference/equations.md": ("Equations with their code", equations.page),
}
"""Pages of the reference that are made from the package."""


def write_pages() -> None:
    """All input of the site builder, from scratch."""
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    (PAGES / "reference").mkdir(parents=True)
    copy_written()
    tutorials.add_exported()
    for page, (_, write) in GENERATED.items():
        (PAGES / page).write_text(write(), "utf-8")
    shutil.copytree(DOCS / "site" / "assets", PAGES / "assets")
    config = tomllib.loads((DOCS / "site" / "zensical.toml").read_text("utf-8"))
    config["project"]["nav"] = navigation(tuple((title, page) for page, (title, _) in GENERATED.items()))
    (BUILD / "zensical.toml").write_text(tomli_w.dumps(config), "utf-8")


def build() -> list[str]:
    """Run the site builder; whatever it complains of comes back."""
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", "zensical.toml"]
    plain = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False, env=plain)
    said = done.stdout + done.stderr
    if done.returncode or "warning" in said.lower():
        return [f"zensical ended with code {done.returncode}:\n{said}"]
    (SITE / "404.html").unlink()  # its links hold at the root of a host alone
    return []


def main() -> None:
    """Build, check, and say what is wrong."""
    BUILD.mkdir(exist_ok=True)
    try:
        write_pages()
    except BrokenLink as error:
        sys.exit(f"docs: {error}")
    found = build()
    found = found or problems(SITE)
    found += readability.problems()
    if found:
        sys.exit("\n".join(f"docs: {each}" for each in found))
    pages = len(list(SITE.rglob("*.html")))
    print(f"docs: {pages} pages in {SITE.relative_to(BUILD.parent)}; open index.html there")


if __name__ == "__main__":
    main()
