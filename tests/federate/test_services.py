"""Units and compose files that `federate init` writes are ones that systemd and compose accept."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairwave.federate.agreement import Agreement
from fairwave.federate.kit import write_kit
from fairwave.federate.service_files import PLACES
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny

SERVICE_KEYS = {
    "image": str,
    "build": dict,
    "user": str,
    "working_dir": str,
    "volumes": list,
    "command": list,
    "ports": list,
    "restart": str,
    "logging": dict,
    "network_mode": str,
    "depends_on": list,
    "environment": dict,
    "stop_grace_period": str,
}
"""Keys of a service in the compose specification, as far as they are used here, and their types."""
RESTARTS = {"no", "always", "on-failure", "unless-stopped"}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("services") / "kit"
    write_kit(folder, Agreement(tiny(), Settings()), ["ap.example.org"], 8443, 30)
    return folder


def _units(kit: Path, place: Path) -> list[Path]:
    """The kit's units with the paths of this machine, in a folder of their own."""
    place.mkdir()
    for unit in [*(kit / "access-point" / "systemd").iterdir(), *(kit / "node-1" / "systemd").iterdir()]:
        text = unit.read_text("utf-8").replace(PLACES["place"], str(kit))
        (place / unit.name.replace("@", "@1")).write_text(text, "utf-8")
    return sorted(place.iterdir())


def _verified(units: list[Path]) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *map(str, units)]
    own = {**os.environ, "SYSTEMD_UNIT_PATH": f"{units[0].parent}:"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=own)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
def test_systemd_accepts_the_units(kit: Path, tmp_path: Path) -> None:
    units = _units(kit, tmp_path / "units")
    assert [unit.name for unit in units] == [
        "fairwave-device@1.service",
        "fairwave-federation.service",
        "fairwave-gate.service",
        "fairwave-superlink.service",
    ]
    done = _verified(units)
    assert done.returncode == 0 and "fairwave" not in done.stderr, done.stderr
    broken = units[-1].read_text("utf-8").replace("Restart=always", "Restart=allways").replace("start.sh", "no.sh")
    units[-1].write_text(broken, "utf-8")
    done = _verified(units)  # the check sees what it should
    assert "allways" in done.stderr and done.returncode != 0


def test_units_keep_what_they_write_private_and_start_what_is_there(kit: Path) -> None:
    for unit in kit.rglob("*.service"):
        text = unit.read_text("utf-8")
        assert "UMask=0077" in text and "User=fairwave" in text and "ProtectSystem=strict" in text
        started = next(line for line in text.splitlines() if line.startswith("ExecStart="))
        script = started.removeprefix(f"ExecStart={PLACES['place']}/").replace("%i", "1")
        assert (kit / script).stat().st_mode & 0o100, started
    federation = (kit / "access-point" / "systemd" / "fairwave-federation.service").read_text("utf-8")
    assert "RestartPreventExitStatus=2 4 5" in federation and "SuccessExitStatus=130" in federation


def _checked(path: Path) -> dict[str, dict[str, Any]]:
    held = yaml.safe_load(path.read_text("utf-8"))
    assert held.keys() == {"services"}
    for name, service in held["services"].items():
        for key, value in service.items():
            assert isinstance(value, SERVICE_KEYS[key]), (name, key)
        assert service["restart"] in RESTARTS
        assert all(isinstance(part, str) for part in [*service["command"], *service["volumes"]])
        assert set(service.get("depends_on", [])) <= held["services"].keys()
        folder = service["working_dir"]
        assert f".:{folder}" in service["volumes"]
        script = service["command"][0] if len(service["command"]) == 1 else "./run.sh"
        assert (path.parent / script).stat().st_mode & 0o100
    return dict(held["services"])


def test_the_access_points_containers_share_a_loopback_interface(kit: Path) -> None:
    services = _checked(kit / "access-point" / "compose.yaml")
    assert services.keys() == {"superlink", "gate", "federation"}
    assert services["superlink"]["ports"] == ["8443:8443"]  # the SuperLink's own port stays inside
    for name in ("gate", "federation"):
        assert services[name]["network_mode"] == "service:superlink" and "ports" not in services[name]
        assert services[name]["image"] == services["superlink"]["image"]


def test_a_devices_container_keeps_its_account_outside(kit: Path) -> None:
    device = _checked(kit / "node-0" / "compose.yaml")["device"]
    account = f"{device['environment']['HOME']}/.local/state/fairwave/account"
    assert any(volume.endswith(f":{account}") for volume in device["volumes"])
    assert "ports" not in device
