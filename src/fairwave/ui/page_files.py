"""The files of the page: a few of its own, and plotly's script, which reports carry too."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.resources
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response

from fairwave.report.plotly_script import plotly_script

PAGE, PLOTLY = "dashboard.html", "plotly.js"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
OURS = importlib.resources.files("fairwave.ui") / "static"


def file_names() -> list[str]:
    """Every file there is. A request names one of these, and no name is made into a path."""
    return sorted([PLOTLY, *(entry.name for entry in OURS.iterdir() if entry.is_file())])


@functools.cache
def _content(name: str) -> tuple[bytes, bytes, str]:
    """A file's content, that content compressed, and a tag that changes with it."""
    content = plotly_script().encode() if name == PLOTLY else (OURS / name).read_bytes()
    return content, gzip.compress(content, 6, mtime=0), f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def page_file(name: str, headers: Headers) -> Response:
    """A file, unless the browser has it already."""
    content, small, tag = _content(name)
    kind = KINDS[Path(name).suffix]
    told = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=told)
    if "gzip" in headers.get("accept-encoding", ""):
        return Response(small, headers=told | {"Content-Encoding": "gzip"}, media_type=kind)
    return Response(content, headers=told, media_type=kind)
