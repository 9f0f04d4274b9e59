"""What the page is answered: its files, runs, devices, results, and news as they come."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from fairwave.report.plotly_script import plotly_script
from fairwave.runs.database import FILE
from fairwave.runs.finished_round import FinishedRound
from fairwave.ui.page_files import file_names
from fairwave.ui.web_app import Server, _news
from tests.unit.ui.stored_runs import PROPOSED, a_run, an_order, being_written, round_arrays, write_rounds
from tests.unit.ui.test_gate import TOKEN, client_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    a_run(made / "a")
    return made


@pytest.fixture(scope="module")
def client(folder) -> Iterator[TestClient]:
    with client_of(folder) as opened:
        opened.get("/", params={"token": TOKEN})
        yield opened


def test_all_files_are_served_and_small(client):
    names = file_names()
    assert {"dashboard.html", "dashboard.js", "dashboard.css", "plotly.css", "plotly.js", "icon.svg"} <= set(names)
    for name in names:
        answer = client.get("/" if name == "dashboard.html" else f"/static/{name}")
        assert answer.status_code == 200 and answer.headers["content-encoding"] == "gzip"
        again = client.get(answer.request.url.path, headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304 and again.content == b""
        if name == "plotly.js":
            assert answer.content == plotly_script().encode() and b"Plotly" in answer.content
        else:
            assert len(answer.content) < 30_000
    plain = client.get("/static/dashboard.js", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers and plain.content


def test_no_file_names_another_host_or_holds_inline_code():
    folder = files("fairwave.ui") / "static"
    for name in file_names():
        if name == "plotly.js":
            continue
        text = (folder / name).read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text and "https:" not in text and "//cdn" not in text, name
        assert "innerHTML" not in text and "eval(" not in text, name
    page = (folder / "dashboard.html").read_text("utf-8")
    assert "style=" not in page and "<style" not in page and not re.search(r"<script(?![^>]*src=)", page)
    assert not re.search(r"\son\w+=", page)


def test_the_list(client):
    found = client.get("/api/runs").json()
    assert [row["name"] for row in found["runs"]] == ["a"] and found["exists"]


def test_a_run(client):
    run = client.get("/api/run", params={"run": "a"}).json()
    assert run["state"] == "done" and run["progress"] == {"done": 8, "total": 8}
    assert run["sessions"] == [["2026-01-02T03:04:05+00:00", "fairwave run small"]]
    assert run["scenario"]["cell.num_devices"] == 3 and run["scenario"]["learning.learning_rate"] == 0.01
    assert [track["scheme"] for track in run["tracks"]] == ["proposed", "max_power"]


def test_devices_of_a_round(client):
    where = {"run": "a", "scheme": "proposed", "seed": "0"}
    second = client.get("/api/devices", params=where | {"round": "2"}).json()
    assert second["distance_m"] == [50.0, 100.0, 200.0] and second["energy_mj"] == [200.0, 400.0, 0.0]
    assert second["status"] == ["delivered", "delivered", "outage"] and second["cheating"] == [1]
    assert second["deviation"] == [0.0, 0.5, 1.0] and second["faults"] is None
    third = client.get("/api/devices", params=where | {"round": "3"}).json()
    assert third["findings"] == ["", "echo", ""] and third["status"][1] == "refused"


def test_faults_and_moves_of_a_federation(tmp_path):
    with being_written(tmp_path / "f", an_order(1, ("proposed",))) as store:
        store.begin(PROPOSED, b"data", {"distance_m": np.array([1.0, 2.0, 3.0]), "samples": np.ones((3, 10), int)})
        others = {
            "gradient_fault": np.array([0, 1, 0]),
            "update_fault": np.array([0, 2, 11]),
            "distance_now_m": np.array([5.0, 6.0, 7.0]),
        }
        store.append(PROPOSED, [FinishedRound(0, round_arrays(0, **others), [])], b"state")
    with client_of(tmp_path) as client:
        where = {"run": "f", "scheme": "proposed", "seed": "0", "round": "1", "token": TOKEN}
        values = client.get("/api/devices", params=where).json()
    assert values["faults"] == ["", "no answer, disconnected", "late"] and values["distance_m"] == [5.0, 6.0, 7.0]


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/api/run?run=nothing", 404, "not among the runs"),
        ("/api/run", 400, "run: is missing"),
        ("/api/devices?run=a&scheme=proposed&seed=x&round=1", 400, "seed: give a whole number"),
        ("/api/devices?run=a&scheme=proposed&seed=0&round=9", 404, "round 9 of proposed with seed 0: not stored"),
        ("/api/devices?run=a&scheme=nobody&seed=0&round=1", 404, "not stored"),
        ("/report?run=a", 404, "write it with: fairwave report"),
        ("/nothing", 404, "Not Found"),
    ],
)
def test_what_cannot_be_answered_is_said(client, path, code, said):
    answer = client.get(path)
    assert answer.status_code == code and said in answer.json()["error"]


def test_results_are_those_that_export_writes(client, folder, tmp_path):
    from fairwave.report.run_export import export_results
    from fairwave.runs.session import results
    from fairwave.runs.store import RunStore

    answer = client.get("/results.csv", params={"run": "a"})
    assert answer.headers["content-disposition"] == 'attachment; filename="a.csv"'
    store = RunStore(folder / "a")
    export_results(results(store), tmp_path / "results.csv")
    store.close()
    assert answer.content == (tmp_path / "results.csv").read_bytes()
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == 2 * 4 * 3


async def message(stream) -> dict:
    return json.loads((await anext(stream)).removeprefix("data: "))


def gist(news: dict) -> list:
    """Which runs there are, their states, and how far they are."""
    known = news["watched"] if "watched" in news else news["runs"]
    return [(run["name"], run["state"], run.get("progress")) for run in known]


def news_of(folder: Path, names: list[str], steps: list) -> list[dict]:
    """The first message, and the next after each step that tells of it."""

    async def told() -> list[dict]:
        server, heard = Server(folder), []
        stream = _news(server, names)
        async with asyncio.timeout(20):
            heard.append(await message(stream))
            for step in steps:
                step()
                while gist(news := await message(stream)) == gist(heard[-1]):
                    pass
                heard.append(news)
        server.ending.set()
        assert [rest async for rest in stream] == []
        server.close()
        return heard

    return asyncio.run(told())


def test_news_carry_only_what_is_new(tmp_path, monkeypatch):
    from fairwave.ui import web_app

    monkeypatch.setattr(web_app, "EVERY_S", 0.05)
    path, away = tmp_path / "a" / FILE, tmp_path / "away"
    with being_written(path.parent, an_order(9, ("proposed",))) as store:
        write_rounds(store, PROPOSED, range(2))
        steps = [lambda: write_rounds(store, PROPOSED, range(2, 5)), lambda: path.rename(away)]
        first, second, third = (each["watched"][0] for each in news_of(tmp_path, ["a"], steps))
        away.rename(path)
    assert first["tracks"][0]["from"] == 0 and first["tracks"][0]["tested"] == [0.1, 0.2] and "scenario" in first
    assert second["tracks"][0]["from"] == 2 and len(second["tracks"][0]["tested"]) == 3 and "scenario" not in second
    assert second["state"] == "running" and third["state"] == "removed" and "was removed" in third["note"]


def test_news_of_the_list(tmp_path, monkeypatch):
    from fairwave.ui import dashboard, web_app

    monkeypatch.setattr(web_app, "EVERY_S", 0.05)
    monkeypatch.setattr(dashboard, "LIST_EVERY_S", 0.05)
    first, second = news_of(tmp_path / "runs", [], [lambda: a_run(tmp_path / "runs" / "a")])
    assert first == {"folder": str(tmp_path / "runs"), "exists": False, "runs": []}
    assert second["exists"]


def test_a_run_nobody_asks_for_is_let_go_of(tmp_path, monkeypatch):
    from fairwave.ui import dashboard

    a_run(tmp_path / "a"), a_run(tmp_path / "b")
    kept = dashboard.Dashboard(tmp_path)
    for name in ("a", "b"):
        kept.run(name, dashboard.Cursor())
    assert set(kept._watched) == {"a", "b"}
    later = dashboard.time.monotonic() + 60
    monkeypatch.setattr(dashboard.time, "monotonic", lambda: later)
    kept.run("b", dashboard.Cursor())
    assert set(kept._watched) == {"b"}
    kept.close()
    assert kept._watched == {}
