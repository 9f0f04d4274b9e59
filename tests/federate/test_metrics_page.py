"""What Prometheus reads of a federation: the text format, the status' values, and nothing that is not proved."""

from __future__ import annotations

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwave.errors import OutputError
from fairwave.federate.fleet_status import DeviceStatus, FleetStatus, TrackStatus, fleet_status
from fairwave.federate.metrics_page import CONTENT_TYPE, metrics_page
from fairwave.federate.metrics_server import MetricsServer
from tests.federate.parties import REPEATABLE, federated, tiny

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")

Samples = dict[tuple[str, str], float]

STATUS = FleetStatus(
    state="running",
    why=None,
    rounds_planned=50,
    delta=1e-5,
    tracks=[TrackStatus("proposed", 0, 7, 4.25)],
    devices=[
        DeviceStatus(0, True, "70", 1794930000.5, 7, {"no_answer": 2, "failed": 1}, 80, 3.5),
        DeviceStatus(1, False, None, None, None, {}, 0, 0.0),
    ],
)


def parsed(page: str) -> Samples:
    """The samples of a page by name and labels; whatever is not in the text format is an error.

    Each metric has its HELP, its TYPE and its samples together, and no sample comes twice.
    """
    assert page.endswith("\n")
    samples: Samples = {}
    current, seen = "", set[str]()
    lines = iter(page.splitlines())
    for line in lines:
        if line.startswith("# HELP "):
            current = line.split(" ", 3)[2]
            assert current not in seen and re.fullmatch(NAME, current)
            seen.add(current)
            assert re.fullmatch(rf"# TYPE {current} (gauge|counter)", next(lines))
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        name, labels, value = match[1], match[2] or "", float(match[3])
        assert name == current and (name, labels) not in samples
        samples[name, labels] = value
    return samples


def test_the_page_says_what_the_status_says() -> None:
    assert parsed(metrics_page(STATUS)) == {
        ("fairwave_running", ""): 1.0,
        ("fairwave_failed", ""): 0.0,
        ("fairwave_rounds", 'scheme="proposed",seed="0"'): 7.0,
        ("fairwave_rounds_planned", ""): 50.0,
        ("fairwave_last_round_seconds", 'scheme="proposed",seed="0"'): 4.25,
        ("fairwave_devices_connected", ""): 1.0,
        ("fairwave_device_connected", 'device="0"'): 1.0,
        ("fairwave_device_connected", 'device="1"'): 0.0,
        ("fairwave_device_last_seen_timestamp_seconds", 'device="0"'): 1794930000.5,
        ("fairwave_device_last_delivered_round", 'device="0"'): 7.0,
        ("fairwave_faults_total", 'device="0",fault="no_answer"'): 2.0,
        ("fairwave_faults_total", 'device="0",fault="failed"'): 1.0,
        ("fairwave_steps_charged", 'device="0"'): 80.0,
        ("fairwave_steps_charged", 'device="1"'): 0.0,
        ("fairwave_epsilon_spent", 'device="0",delta="1e-05"'): 3.5,
        ("fairwave_epsilon_spent", 'device="1",delta="1e-05"'): 0.0,
    }


def test_labels_are_escaped() -> None:
    odd = TrackStatus('a"b\\c\nd', 0, 1, None)
    samples = parsed(metrics_page(FleetStatus("stopped", None, 1, None, [odd], [])))
    assert ("fairwave_rounds", r'scheme="a\"b\\c\nd",seed="0"') in samples


@pytest.mark.parametrize(
    "page",
    [
        "fairwave_x 1\n",
        "# HELP x y\n# TYPE x gauge\nx 1\nx 1\n",
        '# HELP x y\n# TYPE x gauge\nx{a="b} 1\n',
        "# HELP x y\n# TYPE x gauge\nx one\n",
        "# HELP x y\n# TYPE x gauge\nx 1",
    ],
)
def test_the_parser_refuses_what_is_not_the_format(page: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        parsed(page)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetricsServer]:
    with MetricsServer(tmp_path / "run", 0) as started:
        serving = threading.Thread(target=started.serve_forever, daemon=True)
        serving.start()
        yield started
        started.shutdown()
        serving.join(10)


def test_the_endpoint_serves_a_run_and_waits_for_one(server: MetricsServer) -> None:
    address = f"http://127.0.0.1:{server.server_address[1]}"
    with pytest.raises(urllib.error.HTTPError) as none_yet:
        urllib.request.urlopen(f"{address}/metrics", timeout=20)
    assert none_yet.value.code == 503 and b"holds no federation yet" in none_yet.value.read()
    none_yet.value.close()
    federated(tiny(rounds=1), server.run, REPEATABLE)
    with urllib.request.urlopen(f"{address}/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        samples = parsed(answer.read().decode())
    assert samples == parsed(metrics_page(fleet_status(server.run)))
    assert samples["fairwave_rounds", 'scheme="proposed",seed="0"'] == 1.0
    assert not any(name == "fairwave_epsilon_spent" for name, _ in samples)  # mode 'paper' proves none
    with pytest.raises(urllib.error.HTTPError) as elsewhere:
        urllib.request.urlopen(f"{address}/run.sqlite", timeout=20)
    assert elsewhere.value.code == 404
    elsewhere.value.close()


def test_the_endpoint_is_on_loopback_alone_and_says_when_its_port_is_taken(server: MetricsServer) -> None:
    host, port = server.server_address[:2]
    assert host == "127.0.0.1"
    with pytest.raises(OutputError, match=f"--port {port}: cannot be used"):
        MetricsServer(Path("unused"), int(port))
