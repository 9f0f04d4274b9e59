"""Who belongs to a federation: devices added, keys rotated and revoked, certificates renewed, while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from fairwave.errors import ArgumentError, FederationError, OutputError
from fairwave.federate.agreement import read_agreement
from fairwave.federate.control_link import register_keys
from fairwave.federate.credentials import Authority, hosts_of, make_device_key
from fairwave.federate.device_folder import address, write_device_folder
from fairwave.federate.device_keys import key_files, numbers_of
from fairwave.federate.point_folder import PointFolder, fingerprint

Say = Callable[[str], None]
"""Called with each sentence for the operator."""


def register(point: PointFolder, say: Say) -> None:
    """Tell the SuperLink every known key that it does not have yet; revoked keys stay out, whatever holds them."""
    online = {node["node-id"]: node["status"] for node in point.flwr("supernode", "list")["nodes"]}
    nodes, revoked = point.registered(), {fingerprint(path) for path in point.revoked.glob("*.pub")}
    if not key_files(point.known_keys):
        raise FederationError(f"{point.known_keys}: holds no public key; give each device's as NUMBER.pub")
    new = []
    for path in key_files(point.known_keys):
        device, name = numbers_of(path)[0], fingerprint(path)
        status = online.get(nodes.get(name, ""), "")
        if name in revoked:
            say(f"device {device}: {path.name} was revoked, and stays out; take the file away")
        elif status == "unregistered":
            say(f"device {device}: {path.name} was unregistered at the SuperLink, and stays out; rotate the key")
        elif status:
            say(f"device {device}: {path.name} is registered already")
        else:
            new.append(path)
    _tell(point, new, say)


def add(point: PointFolder, device: int, place: Path, say: Say, *, offline: bool) -> Path:
    """Make the folder of a device that has none, with a new key that the access point admits; the folder."""
    agreement = read_agreement(point.agreement)
    _check(agreement.order.scenario.cell.num_devices, device)
    if keys := _keys_of(point, device):
        raise ArgumentError(
            f"device {device}: has a key ({keys[0].name}); rotate it, or revoke it first if the device is lost"
        )
    folder, public = place / f"node-{device}", point.known_keys / f"{device}.pub"
    authority = (point.folder / "ca.crt").read_bytes()
    write_device_folder(folder, device, address(point.host, point.port), authority, agreement, public)
    _unless(offline, point, public, say)
    return folder


def rotate(point: PointFolder, device: int, private: Path, say: Say, *, offline: bool) -> None:
    """Give a device a second key, as good as its first, until that is revoked."""
    keys = _keys_of(point, device)
    if not keys:
        raise ArgumentError(f"device {device}: has no key to rotate; add the device")
    if private.exists():
        raise OutputError(f"{private}: is there already; take it away, or choose another --out")
    public = point.known_keys / f"{device}-{numbers_of(keys[-1])[1] + 1}.pub"
    make_device_key(private, public)
    _unless(offline, point, public, say)


def revoke(point: PointFolder, device: int, say: Say, *, old_only: bool, offline: bool) -> None:
    """Take a device's keys out of the federation: all of them, or all but the newest.

    The access point stops trusting them first, at the latest in its next round, whether or not the SuperLink answers.
    """
    keys = _keys_of(point, device)
    if not keys or (old_only and len(keys) == 1):
        raise ArgumentError(
            f"device {device}: has {'no older key' if keys else 'no key'}; 'fairwave federate status' lists devices"
        )
    nodes, failed = point.registered(), ""
    point.revoked.mkdir(mode=0o700, exist_ok=True)
    for path in keys[:-1] if old_only else keys:
        name = fingerprint(path)
        path.rename(point.revoked / f"{device}-{name[:16]}.pub")
        say(f"device {device}: {path.name} is revoked; the access point refuses it from its next round on")
        if offline:
            continue
        try:
            if name not in nodes:
                raise FederationError(f"the SuperLink's number for {path.name} is not known here")
            point.flwr("supernode", "unregister", nodes[name])
        except FederationError as error:
            failed = failed or str(error)
    if failed:
        raise FederationError(
            f"device {device}: revoked at the access point, but not unregistered at the SuperLink ({failed}); the "
            "device can connect, and is not heard"
        )


def renew(point: PointFolder, authority: Path, days: int) -> None:
    """A new certificate and key for the access point, under the names and addresses of the old one."""
    certificate, key = point.folder / "server.crt", point.folder / "server.key"
    issuer = Authority.read(point.folder / "ca.crt", authority)
    issuer.issue(hosts_of(certificate), days, certificate, key)


def _check(count: int, device: int) -> None:
    if not 0 <= device < count:
        raise ArgumentError(f"device {device}: the scenario has devices 0 to {count - 1}")


def _keys_of(point: PointFolder, device: int) -> list[Path]:
    """A device's keys, the newest last."""
    return [path for path in key_files(point.known_keys) if numbers_of(path)[0] == device]


def _unless(offline: bool, point: PointFolder, public: Path, say: Say) -> None:
    if offline:
        say(f"the SuperLink has not been told: copy {public.name} to the access point's known_keys, then ./register.sh")
        return
    try:
        _tell(point, [public], say)
    except FederationError as error:
        raise FederationError(
            f"{public.name}: written, but not registered ({error}); ./register.sh does that"
        ) from None


def _tell(point: PointFolder, keys: Sequence[Path], say: Say) -> None:
    """Register keys, and keep the numbers of their nodes, by which alone the SuperLink lets them be revoked."""
    if not keys:
        return
    told = register_keys(point.superlink, point.folder / "ca.crt", keys)
    nodes = {fingerprint(path): node for path, node in told.items() if node is not None}
    point.note_registered({**point.registered(), **nodes})
    for path, node in told.items():
        outcome = "is known to the SuperLink already" if node is None else "is registered"
        say(f"device {numbers_of(path)[0]}: {path.name} {outcome}")
