"""A device's own log: what went wrong there, in full. It stays on the device; the access point hears one word."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
from pathlib import Path

LOG = "device.log"
_LARGEST, _KEPT = 1 << 20, 2


def note(folder: Path, what: str, error: BaseException | None = None) -> None:
    """Add to the log in a device's private folder; a log that cannot be written must not stop the device."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handler = logging.handlers.RotatingFileHandler(folder / LOG, maxBytes=_LARGEST, backupCount=_KEPT)
        os.chmod(folder / LOG, 0o600)
    except OSError:
        return
    handler.handleError = lambda record: None  # type: ignore[method-assign]  # it would print the record's trace
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    trace = None if error is None else (type(error), error, error.__traceback__)
    try:
        handler.handle(logging.LogRecord(LOG, logging.ERROR, "", 0, what, None, trace))
    finally:
        with contextlib.suppress(OSError):
            handler.close()
