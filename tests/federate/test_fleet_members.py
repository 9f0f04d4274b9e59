"""The operator's commands: who is let in and who is not, while a federation runs."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key, load_ssh_public_key
from cryptography.x509.verification import PolicyBuilder, Store

from fairwave.errors import ArgumentError, FederationError, OutputError
from fairwave.federate import fleet_members
from fairwave.federate.agreement import Agreement, read_agreement
from fairwave.federate.device_keys import KnownKeys, sign
from fairwave.federate.kit import write_kit
from fairwave.federate.point_folder import PointFolder
from fairwave.federate.settings import Settings
from tests.federate.parties import tiny


class StandIn:
    """A SuperLink as Flower 1.41 behaves: a key has one node for ever, and one that was unregistered stays so."""

    def __init__(self) -> None:
        self.nodes: dict[bytes, str] = {}
        self.status: dict[str, str] = {}
        self.answers, self._numbers = True, itertools.count(2**63)

    def asked(self, *arguments: str) -> dict[str, Any]:
        if not self.answers:
            raise FederationError("flwr: failed (Connection to the SuperLink is unavailable.)")
        match arguments:
            case ("supernode", "list"):
                return {"nodes": [{"node-id": node, "status": status} for node, status in self.status.items()]}
            case ("supernode", "unregister", node) if self.status.get(node, "unregistered") != "unregistered":
                self.status[node] = "unregistered"
                return {}
        raise FederationError(f"flwr {arguments}: failed")

    def told(self, address: str, authority: Path, keys: Iterable[Path]) -> dict[Path, str | None]:
        if not self.answers:
            raise FederationError(f"{address}: nobody answers")
        nodes: dict[Path, str | None] = {}
        for path in keys:
            key, nodes[path] = path.read_bytes(), None
            if key not in self.nodes:
                self.nodes[key] = nodes[path] = node = str(next(self._numbers))
                self.status[node] = "registered"
        return nodes

    def admits(self, public: Path) -> bool:
        return self.status.get(self.nodes.get(public.read_bytes(), ""), "unregistered") != "unregistered"


@pytest.fixture
def superlink(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setattr(PointFolder, "flwr", stand_in.asked)
    monkeypatch.setattr(fleet_members, "register_keys", stand_in.told)
    return stand_in


@pytest.fixture
def point(tmp_path: Path, superlink: StandIn) -> PointFolder:
    write_kit(tmp_path / "kit", Agreement(tiny(), Settings()), ["ap.example.org", "192.0.2.7"], 8443, 30)
    found = PointFolder.of(tmp_path / "kit")
    fleet_members.register(found, lambda text: None)
    return found


def _proves(point: PointFolder, device: int, private: Path) -> bool:
    return KnownKeys(point.known_keys).vouches(device, b"question", sign(private, device, b"question"))


def test_the_folder_is_found_by_itself_and_by_the_kit(point: PointFolder) -> None:
    assert PointFolder.of(point.folder).folder == point.folder
    assert (point.host, point.port) == ("ap.example.org", 8443)
    with pytest.raises(ArgumentError, match=r"has no kit.toml; give the folder access-point"):
        PointFolder.of(point.known_keys)
    (point.folder / "kit.toml").write_text('host = "a"\n')
    with pytest.raises(ArgumentError, match=r"does not say host and port"):
        PointFolder.of(point.folder)


def test_registering_again_goes_on_at_known_keys(point: PointFolder, superlink: StandIn) -> None:
    said: list[str] = []
    fleet_members.register(point, said.append)
    assert said == [f"device {k}: {k}.pub is registered already" for k in range(3)]
    (point.folder / "registered.json").unlink()
    said.clear()
    fleet_members.register(point, said.append)
    assert said == [f"device {k}: {k}.pub is known to the SuperLink already" for k in range(3)]
    superlink.nodes.clear()  # a new database
    superlink.status.clear()
    fleet_members.register(point, said.append)
    assert all(superlink.admits(path) for path in point.known_keys.iterdir())


def test_a_revoked_key_stays_out(point: PointFolder, superlink: StandIn) -> None:
    public = point.known_keys / "1.pub"
    kept, private = public.read_bytes(), point.folder.parent / "node-1" / "node.key"
    fleet_members.revoke(point, 1, lambda text: None, old_only=False, offline=False)
    assert not _proves(point, 1, private) and not public.exists()
    public.write_bytes(kept)  # somebody brings it back from a copy, and the SuperLink has a new database
    assert not superlink.admits(public)
    superlink.nodes.clear()
    superlink.status.clear()
    said: list[str] = []
    fleet_members.register(point, said.append)
    assert "device 1: 1.pub was revoked, and stays out; take the file away" in said
    assert not superlink.admits(public)
    assert superlink.admits(point.known_keys / "0.pub")


def test_what_was_unregistered_by_hand_stays_out(point: PointFolder, superlink: StandIn) -> None:
    superlink.status[superlink.nodes[(point.known_keys / "2.pub").read_bytes()]] = "unregistered"
    said: list[str] = []
    fleet_members.register(point, said.append)
    assert "device 2: 2.pub was unregistered at the SuperLink, and stays out; rotate the key" in said


def test_a_lost_device_is_added_again(point: PointFolder, superlink: StandIn, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"device 1: has a key \(1.pub\); rotate it, or revoke it first"):
        fleet_members.add(point, 1, tmp_path, lambda text: None, offline=False)
    fleet_members.revoke(point, 1, lambda text: None, old_only=False, offline=False)
    folder = fleet_members.add(point, 1, tmp_path, lambda text: None, offline=False)
    assert folder == tmp_path / "node-1"
    assert _proves(point, 1, folder / "node.key") and superlink.admits(point.known_keys / "1.pub")
    assert not _proves(point, 1, point.folder.parent / "node-1" / "node.key")
    assert read_agreement(folder / "agreement") == Agreement(tiny(), Settings())
    original = point.folder.parent / "node-1"
    for name in ("device.toml", "start.sh", "ca.crt"):
        assert (folder / name).read_bytes() == (original / name).read_bytes()
    assert (folder / "node.key").stat().st_mode & 0o077 == 0
    with pytest.raises(ArgumentError, match="device 3: the scenario has devices 0 to 2"):
        fleet_members.add(point, 3, tmp_path, lambda text: None, offline=False)


def test_two_keys_until_the_old_one_is_revoked(point: PointFolder, superlink: StandIn, tmp_path: Path) -> None:
    old, new = point.folder.parent / "node-0" / "node.key", tmp_path / "new.key"
    fleet_members.rotate(point, 0, new, lambda text: None, offline=False)
    assert _proves(point, 0, old) and _proves(point, 0, new)
    public = point.known_keys / "0-2.pub"
    assert load_ssh_public_key(public.read_bytes()) == load_ssh_private_key(new.read_bytes(), None).public_key()
    assert superlink.admits(public) and superlink.admits(point.known_keys / "0.pub")
    with pytest.raises(OutputError, match="is there already"):
        fleet_members.rotate(point, 0, new, lambda text: None, offline=False)
    fleet_members.revoke(point, 0, lambda text: None, old_only=True, offline=False)
    assert not _proves(point, 0, old) and _proves(point, 0, new)
    assert superlink.admits(public) and list(superlink.status.values()).count("unregistered") == 1
    with pytest.raises(ArgumentError, match="device 0: has no older key"):
        fleet_members.revoke(point, 0, lambda text: None, old_only=True, offline=False)
    fleet_members.rotate(point, 0, tmp_path / "newer.key", lambda text: None, offline=False)
    assert (point.known_keys / "0-3.pub").exists()  # names are not used twice


def test_a_superlink_that_does_not_answer_changes_nothing_about_trust(
    point: PointFolder, superlink: StandIn, tmp_path: Path
) -> None:
    superlink.answers = False
    with pytest.raises(FederationError, match="revoked at the access point, but not unregistered"):
        fleet_members.revoke(point, 0, lambda text: None, old_only=False, offline=False)
    assert not _proves(point, 0, point.folder.parent / "node-0" / "node.key")
    with pytest.raises(FederationError, match=r"0.pub: written, but not registered .*; ./register.sh does that"):
        fleet_members.add(point, 0, tmp_path, lambda text: None, offline=False)
    superlink.answers = True
    fleet_members.register(point, lambda text: None)
    assert superlink.admits(point.known_keys / "0.pub") and _proves(point, 0, tmp_path / "node-0" / "node.key")


def test_offline_the_superlink_is_told_later(point: PointFolder, superlink: StandIn, tmp_path: Path) -> None:
    superlink.answers = False
    said: list[str] = []
    fleet_members.revoke(point, 0, said.append, old_only=False, offline=True)
    fleet_members.add(point, 0, tmp_path, said.append, offline=True)
    assert "then ./register.sh" in said[-1]


def test_a_renewed_certificate_is_good_for_the_same_names_and_devices(point: PointFolder) -> None:
    path, key = point.folder / "server.crt", point.folder / "server.key"
    before = x509.load_pem_x509_certificate(path.read_bytes())
    fleet_members.renew(point, point.folder.parent / "authority" / "ca.key", 90)
    after = x509.load_pem_x509_certificate(path.read_bytes())
    assert after.serial_number != before.serial_number
    private = load_pem_private_key(key.read_bytes(), None)
    assert private.public_key() == after.public_key() and key.stat().st_mode & 0o077 == 0
    trusted = x509.load_pem_x509_certificate((point.folder.parent / "node-0" / "ca.crt").read_bytes())
    late = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=80)
    policy = PolicyBuilder().store(Store([trusted])).time(late)
    for name in ("ap.example.org", "localhost"):
        policy.build_server_verifier(x509.DNSName(name)).verify(after, [])
    with pytest.raises(ArgumentError, match="is not the key of"):
        fleet_members.renew(point, key, 90)
    with pytest.raises(ArgumentError, match="cannot be read"):
        fleet_members.renew(point, point.folder / "no.key", 90)
