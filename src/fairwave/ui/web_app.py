"""The web application: the page, what it asks for as JSON, event streams, reports and results."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fairwave.errors import FairwaveError
from fairwave.ui.gate import Door, Gate
from fairwave.ui.page_files import PAGE, file_names, page_file

if TYPE_CHECKING:
    from fairwave.ui.dashboard import Dashboard

EVERY_S = 0.5
"""How often a stream looks for news."""
HEARTBEAT_S = 15.0
"""After so long without news a stream says something nevertheless, so that both ends know that the other is there."""
MOST_RUNS = 12
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "sandbox allow-scripts allow-downloads"
)
"""A report has its scripts in itself. It may be anybody's file: it gets no origin, no cookie and no connection."""
NOT_THERE = {
    "folder": "",
    "generation": 0,
    "state": "removed",
    "progress": {"done": 0, "total": 0},
    "left_s": None,
    "rounds": 0,
    "federation": False,
    "sessions": [],
    "report": False,
    "tracks": [],
}
"""What a tab is told of a run that is not among the runs of the folder."""
Answer = TypeVar("Answer")


class Server:
    """What the routes share: the dashboard, the one thread that uses it, and whether the program is ending."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._dashboard: Dashboard | None = None
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="reads")
        self.ending = asyncio.Event()

    async def ask(self, question: Callable[[Dashboard], Answer]) -> Answer:
        """Have the thread that reads answer a question."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: question(self._opened()))

    def close(self) -> None:
        """Let go of all files; a read in hand takes milliseconds, and is waited for."""
        if self._dashboard is not None:
            self._thread.submit(self._dashboard.close)
        self._thread.shutdown(cancel_futures=False)

    def _opened(self) -> Dashboard:
        """The dashboard; its first use loads what takes long to load, while the browser starts."""
        from fairwave.ui.dashboard import Dashboard

        self._dashboard = self._dashboard or Dashboard(self._folder)
        return self._dashboard


def make_app(folder: Path, door: Door) -> Starlette:
    """The application for the runs below a folder."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.server = Server(folder)
        warming = asyncio.ensure_future(app.state.server.ask(lambda dashboard: dashboard.runs()))
        warming.add_done_callback(lambda done: done.cancelled() or done.exception())
        yield
        app.state.server.close()

    routes = [
        Route("/", functools.partial(_file, PAGE)),
        *(Route(f"/static/{name}", functools.partial(_file, name)) for name in file_names() if name != PAGE),
        Route("/events", _events),
        Route("/api/runs", _runs),
        Route("/api/run", _run),
        Route("/api/devices", _devices),
        Route("/report", _report),
        Route("/results.csv", _results),
    ]
    handlers: Any = {FairwaveError: _said, HTTPException: _unknown}
    return Starlette(
        routes=routes, middleware=[Middleware(Gate, door=door)], lifespan=lifespan, exception_handlers=handlers
    )


async def _file(name: str, request: Request) -> Response:
    return page_file(name, request.headers)


async def _runs(request: Request) -> Response:
    return _json(await _server(request).ask(lambda dashboard: dashboard.runs()))


async def _run(request: Request) -> Response:
    from fairwave.ui.dashboard import Cursor

    name = _wanted(request, "run")
    return _json(await _server(request).ask(lambda dashboard: dashboard.run(name, Cursor())))


async def _devices(request: Request) -> Response:
    from fairwave.runs.order import Track

    name = _wanted(request, "run")
    track = Track(_wanted(request, "scheme"), _whole(request, "seed"))
    number = _whole(request, "round")
    return _json(await _server(request).ask(lambda dashboard: dashboard.devices(name, track, number)))


async def _report(request: Request) -> Response:
    name = _wanted(request, "run")
    path = await _server(request).ask(lambda dashboard: dashboard.report(name))
    return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


async def _results(request: Request) -> Response:
    name = _wanted(request, "run")
    stored = await _server(request).ask(lambda dashboard: dashboard.results(name))
    from fairwave.ui.results_file import results_csv

    content = await asyncio.get_running_loop().run_in_executor(None, results_csv, *stored)
    file = re.sub(r"[^A-Za-z0-9._-]+", "-", name)
    return Response(
        content, media_type="text/csv", headers={"Content-Disposition": f'attachment; filename="{file}.csv"'}
    )


async def _events(request: Request) -> Response:
    """News of the runs that are named, or of the list of runs if none is."""
    names = request.query_params.getlist("run")[:MOST_RUNS]
    return StreamingResponse(_news(_server(request), names), media_type="text/event-stream")


async def _news(server: Server, names: list[str]) -> AsyncIterator[str]:
    from fairwave.ui.dashboard import Cursor

    cursors = {name: Cursor() for name in names}
    sent, quiet_s = "", 0.0
    while not server.ending.is_set():
        message = json.dumps(await _latest(server, cursors), allow_nan=False)
        if message != sent:
            yield f"data: {message}\n\n"
            sent, quiet_s = message, 0.0
        elif quiet_s >= HEARTBEAT_S:
            yield ": still there\n\n"
            quiet_s = 0.0
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(server.ending.wait(), EVERY_S)
        quiet_s += EVERY_S


async def _latest(server: Server, cursors: dict[str, Any]) -> dict[str, Any]:
    if not cursors:
        return await server.ask(lambda dashboard: dashboard.runs())
    news = []
    for name, cursor in cursors.items():
        try:
            news.append(await server.ask(functools.partial(_told, name=name, cursor=cursor)))
        except FairwaveError as error:
            news.append({**NOT_THERE, "name": name, "note": str(error)})
    return {"watched": news}


def _told(dashboard: Dashboard, name: str, cursor: Any) -> dict[str, Any]:
    return dashboard.run(name, cursor)


def _server(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


def _wanted(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise HTTPException(400, f"{name}: is missing")
    return value


def _whole(request: Request, name: str) -> int:
    value = _wanted(request, name)
    if not re.fullmatch(r"[0-9]{1,16}", value):
        raise HTTPException(400, f"{name}: give a whole number")
    return int(value)


def _json(content: Any) -> Response:
    return Response(json.dumps(content, allow_nan=False), media_type="application/json")


async def _said(request: Request, error: Exception) -> Response:
    """An error that says what to do; the run may come back."""
    return JSONResponse({"error": str(error)}, 404)


async def _unknown(request: Request, error: Exception) -> Response:
    code, said = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "failed")
    return JSONResponse({"error": said}, code)
