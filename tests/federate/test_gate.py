"""The gate keeps strangers from the SuperLink, and devices in. Attacks are bounded, and stay on loopback."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.federate.gate_attack import HONEST, OTHER_STRANGER, POLL, STRANGER, Gate, running_gate

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.faults,
    pytest.mark.skipif(
        shutil.which("nginx") is None and os.environ.get("FAIRWAVE_NGINX") != "required",
        reason="nginx, which is the gate, is not installed here (set FAIRWAVE_NGINX=required to insist)",
    ),
]

MANY = 520
"""Connections of one stranger: as many as locked everybody out of a gate without limits."""
PATIENCE_S = 3.0
SLOW_HEADER = f"POST {POLL} HTTP/1.1\r\nHost: localhost\r\n".encode()
SLOW_BODY = SLOW_HEADER + b"Content-Length: 100000\r\n\r\nA"


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with running_gate(tmp_path / "kit") as running:
        yield running


def test_large_bodies_never_reach_the_superlink(gate: Gate) -> None:
    twelve, five = 12 << 20, (5 << 20) + 4096
    for _ in range(3):
        assert gate.ask(STRANGER, body=bytes(twelve)) == 413
        assert gate.ask_in_chunks(STRANGER, twelve) == 413
    assert (gate.upstream.requests, gate.upstream.bytes) == (0, 0)
    assert gate.ask(HONEST, body=bytes(five)) == 200  # Flower's largest piece, and what is around it
    assert gate.upstream.bytes == five


@pytest.mark.parametrize("beginning", [SLOW_HEADER, SLOW_BODY], ids=["slow header", "slow body"])
def test_slow_connections_lock_nobody_out(gate: Gate, beginning: bytes) -> None:
    held = [*gate.stall(STRANGER, beginning, MANY), *gate.stall(OTHER_STRANGER, beginning, MANY)]
    try:
        begun = time.monotonic()
        assert gate.ask(HONEST) == 200
        assert time.monotonic() - begun < PATIENCE_S
        assert (gate.upstream.connections, gate.upstream.requests) == (1, 1)  # what is not whole waits in the gate
    finally:
        for connection in held:
            connection.close()


def test_one_address_has_a_bounded_number_of_requests_under_way(gate: Gate) -> None:
    """Slow bodies of one stranger are refused beyond that number; those that are held are the stranger's own."""
    held = gate.stall(STRANGER, SLOW_BODY, 40)
    try:
        assert gate.ask(STRANGER) == 429
        assert gate.ask(HONEST) == 200
    finally:
        for connection in held:
            connection.close()


def test_only_what_devices_need_passes(gate: Gate) -> None:
    assert gate.ask(HONEST) == 200
    for path in (
        "/v1/control/start-run",
        "/v1/control",
        "/",
        "/health",
        "/v1/fleet/../control/start-run",
        "/v1/fleet/%2e%2e/control/start-run",
        "/v1/control/start-run/../../fleet/pull-messages",
        "/v1/control%2f..%2ffleet/pull-messages",
        "//v1/control/start-run",
        "/v1/fleet/pull-messages?a=b",
    ):
        assert gate.ask(HONEST, path) == 403, path
    for method in ("GET", "PUT", "DELETE"):
        assert gate.ask(HONEST, method=method) == 403, method
    assert gate.upstream.paths == {POLL}


def test_a_flood_is_refused_and_polling_is_not(gate: Gate) -> None:
    """A stranger asks 1,500 times at once; from another address, a device asks once a second meanwhile."""
    flood, polls = Counter[int](), Counter[int]()
    polled_at, end = 0.0, time.monotonic() + 30.0
    connection = gate.connect(STRANGER)
    while flood.total() < 1_500 and time.monotonic() < end:
        flood[gate.ask_on(connection)] += 1
        if time.monotonic() - polled_at > 1.0:
            polled_at = time.monotonic()
            polls[gate.ask(HONEST)] += 1
    connection.close()
    assert flood[429] > 100 and flood.keys() == {200, 429}
    assert polls.keys() == {200} and polls.total() >= 1
    assert gate.upstream.requests == flood[200] + polls[200]


def test_three_devices_behind_one_address_work_through_a_round(gate: Gate) -> None:
    """Forty requests each in one go, then polling for five seconds, all from one address."""
    connections = [gate.connect(HONEST) for _ in range(3)]
    statuses = [gate.ask_on(connection) for _ in range(40) for connection in connections]
    end = time.monotonic() + 5.0
    while time.monotonic() < end:
        statuses += [gate.ask_on(connection) for connection in connections]
        time.sleep(1.0)
    assert set(statuses) == {200}
    for connection in connections:
        connection.close()


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this kernel has no IPv6")
def test_the_gate_listens_on_ipv6_too(gate: Gate) -> None:
    with gate.connect("::1", host="::1") as connection:
        assert gate.ask_on(connection) == 200


def test_the_superlink_is_not_reached_by_a_plain_connection(gate: Gate) -> None:
    """What is not TLS is answered by the gate itself."""
    with socket.create_connection(("127.0.0.1", gate.port), timeout=10.0) as plain:
        plain.sendall(f"POST {POLL} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        answer = http.client.HTTPResponse(plain)
        answer.begin()
        assert answer.status == 400
    assert gate.upstream.requests == 0
