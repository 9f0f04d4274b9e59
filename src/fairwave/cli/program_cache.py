"""Compiled programs are kept between commands: compiling takes longer than the first rounds of a small run."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = "JAX_COMPILATION_CACHE_DIR"
WORTH_KEEPING = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def keep_programs() -> None:
    """Tell JAX, before it is imported, to keep programs in the user's cache; what the user has set stays."""
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a home
        return
    folder = home / "fairwave" / "programs"
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(there, os.W_OK):  # JAX would complain about every program
        return
    os.environ.setdefault(FOLDER, str(folder))
    os.environ.setdefault(WORTH_KEEPING, "0.3")
