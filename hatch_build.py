"""What the package says about itself, and what it carries, as far as `pyproject.toml` alone cannot say it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

HOME = "FAIRWAVE_HOME_URL"
"""Address of the project's repository at its host; without it, a package names no address."""
SHIPPED = {"docs": "*.md", "examples": "*.*"}
"""What help texts and messages cite: it lies in the wheel as it does in a checkout."""
_LINK = re.compile(r"(?P<before>\]\(|<img\s[^>]*?src=\")(?P<path>[^)\"\s#:]+)(?P<anchor>#[^)\"\s]*)?(?P<after>[)\"])")


class Metadata(MetadataHookInterface):
    """The README as the package's long description, and the project's addresses if its home is known."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in what `project.dynamic` lists."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        home = os.environ.get(HOME, "").rstrip("/")
        if home:
            if not re.fullmatch(r"https://[^\s/]+/\S+", home):
                raise ValueError(f"{HOME}: {home!r} is not the address of a repository; give https://HOST/PATH")
            text = absolute(text, home, f"v{metadata['version']}", Path(self.root))
            metadata["urls"] = addresses(home, f"v{metadata['version']}")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class Build(BuildHookInterface):  # type: ignore[type-arg]
    """Documentation and examples inside the wheel; an editable install finds them in its checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, each under the package."""
        if self.target_name == "wheel" and version != "editable":
            for folder, pattern in SHIPPED.items():
                for path in sorted((Path(self.root) / folder).glob(pattern)):
                    build_data["force_include"][str(path)] = f"fairwave/{folder}/{path.name}"


def addresses(home: str, tag: str) -> dict[str, str]:
    """The addresses that a package index shows."""
    return {
        "Homepage": home,
        "Documentation": f"{home}/blob/{tag}/docs/",
        "Changelog": f"{home}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def absolute(text: str, home: str, tag: str, root: Path) -> str:
    """The text with an address for every image and link to a file of the repository at `tag`."""

    def addressed(link: re.Match[str]) -> str:
        path = link["path"]
        if not (root / path).exists():
            return link[0]
        kind = "raw" if Path(path).suffix in {".svg", ".png"} else "blob"
        return f"{link['before']}{home}/{kind}/{tag}/{path}{link['anchor'] or ''}{link['after']}"

    return _LINK.sub(addressed, text)
