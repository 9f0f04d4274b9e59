"""Who is let in: this machine's own browser with the token, for reading, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fairwave.ui.gate import Door
from fairwave.ui.web_app import make_app
from tests.unit.ui.stored_runs import a_run

TOKEN = "a token of more than sixteen"
PLACE = "http://127.0.0.1:8765"
PATHS = ("/", "/static/dashboard.js", "/api/runs", "/api/run?run=a", "/events", "/report?run=a", "/results.csv?run=a")


def client_of(folder: Path, **door) -> TestClient:
    app = make_app(folder, Door(**{"token": TOKEN, "port": 8765} | door))
    return TestClient(app, base_url=PLACE, follow_redirects=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    (a_run(made / "a") / "report.html").write_text("<script>alert(1)</script>")
    (made / "secret.txt").write_text("secret")
    return made


@pytest.fixture
def stranger(folder) -> Iterator[TestClient]:
    with client_of(folder) as client:
        yield client


@pytest.fixture
def guest(stranger) -> TestClient:
    assert stranger.get("/", params={"token": TOKEN}).status_code == 303
    return stranger


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger):
    answer = stranger.get("/", params={"token": TOKEN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith("fairwave-ui-8765=") and "httponly" in cookie and "samesite=strict" in cookie
    assert stranger.get("/").status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_nothing_opens_without_the_token(stranger, path):
    for token in (None, "", TOKEN[:-1], TOKEN + "x", "\u00e9"):
        answer = stranger.get(path, params=None if token is None else {"token": token, "run": "a"})
        assert answer.status_code == 403 and "fairwave:" in answer.text
    stranger.cookies.set("fairwave-ui-8765", TOKEN[:-1])
    assert stranger.get(path).status_code == 403


def test_the_token_also_opens_a_single_address(stranger):
    answer = stranger.get("/results.csv", params={"run": "a", "token": TOKEN})
    assert answer.status_code == 200 and "set-cookie" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_it_is_for_reading_alone(guest, method):
    for path in PATHS:
        answer = guest.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "192.168.1.5", "", "["]
)
def test_a_rebound_name_is_refused(guest, host):
    assert guest.get("/api/runs", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "localhost:9999", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_known(host):
    assert Door(token=TOKEN, port=8765).knows(host)


def test_an_open_host_is_known_by_its_addresses_and_its_names():
    door = Door(token=TOKEN, port=8765, names=frozenset({"lab"}), loopback=False)
    assert door.knows("192.168.1.5:8765") and door.knows("lab:8765") and not door.knows("evil.example")


@pytest.mark.parametrize(
    "said",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
def test_other_pages_are_refused(guest, said):
    assert guest.get("/api/runs", headers=said).status_code == 403


def test_the_page_itself_and_links_to_it_are_not(guest):
    own = {"origin": PLACE, "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}
    assert guest.get("/api/runs", headers=own).status_code == 200
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert guest.get("/", headers=link).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../secret.txt",
        "/static/%2e%2e/secret.txt",
        "/static/..%2f..%2fsecret.txt",
        "/static//etc/passwd",
        "/secret.txt",
        "/report?run=../a",
        "/report?run=/etc",
        "/report?run=a/../a",
        "/report?run=",
        "/results.csv?run=..",
        "/api/run?run=%2e%2e",
        "/api/devices?run=../a&scheme=proposed&seed=0&round=1",
    ],
)
def test_no_path_leads_out(guest, path):
    answer = guest.get(path)
    assert answer.status_code == 404 and "secret" not in answer.text and "root:" not in answer.text


def test_a_report_that_is_a_link_is_no_report(guest, folder):
    other = a_run(folder / "b")
    (other / "report.html").symlink_to(folder / "secret.txt")
    assert guest.get("/report", params={"run": "b"}).status_code == 404


def test_every_answer_is_guarded(guest):
    for path in ("/", "/static/dashboard.css", "/api/runs", "/nothing", "/results.csv?run=a"):
        headers = guest.get(path).headers
        policy = headers["content-security-policy"]
        assert (
            policy.startswith("default-src 'self';") and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        )
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"


def test_a_report_gets_no_origin(guest):
    answer = guest.get("/report", params={"run": "a"})
    policy = answer.headers["content-security-policy"]
    assert answer.status_code == 200 and answer.text.startswith("<script>")
    assert "default-src 'none'" in policy and "sandbox allow-scripts" in policy and "allow-same-origin" not in policy
