"""Documentation and examples that come with fairwave."""

from __future__ import annotations

from pathlib import Path

import fairwave

_PACKAGE = Path(fairwave.__file__).parent


def shipped_files(folder: str, suffixes: tuple[str, ...]) -> list[Path]:
    """Files of `docs` or `examples`: a wheel holds these folders inside the package, a checkout beside `src`."""
    place = _PACKAGE / folder
    if not place.is_dir():
        place = _PACKAGE.parents[1] / folder
    return sorted(path for path in place.glob("*") if path.suffix in suffixes)
