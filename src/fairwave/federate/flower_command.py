"""Flower's own command line, asked for JSON: what the operator of a SuperLink does with it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairwave.errors import FederationError
from fairwave.federate.log_lines import plain

PATIENCE_S = 120.0


def flwr(environment: Mapping[str, str], see: str, *arguments: str) -> dict[str, Any]:
    """The JSON that a command of Flower prints last, when it is asked for any; `see` is the remedy if it fails."""
    command = [str(Path(sys.executable).parent / "flwr"), *arguments]
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FederationError(f"flwr {arguments[0]}: no answer in {PATIENCE_S:g} s; try again") from None
    text = done.stdout.decode("utf-8", "replace")
    try:
        answer = json.loads(text[text.index("{") :])
    except ValueError:
        answer = {}
    if done.returncode != 0 or not answer.get("success", False):
        why = plain(" ".join((text + done.stderr.decode("utf-8", "replace")).split())[-300:])
        raise FederationError(f"flwr {arguments[0]}: failed ({why}); {see}")
    return dict(answer)


def connection_settings(name: str, address: str, authority: Path) -> str:
    """Flower's settings for the SuperLink at an address."""
    return (
        f'[superlink]\ndefault = "{name}"\n[superlink.{name}]\naddress = "{address}"\n'
        f'root-certificates = "{authority}"\n'
    )
