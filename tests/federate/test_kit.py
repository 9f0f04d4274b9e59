"""What `federate init` writes is all that a deployment needs, and lets nobody in who should not be."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_private_key,
    load_ssh_public_key,
)
from cryptography.x509.verification import PolicyBuilder, Store

from fairwave.errors import ArgumentError, OutputError, ScenarioError
from fairwave.federate.agreement import FEDERATION, SCENARIO, Agreement, read_agreement, write_agreement
from fairwave.federate.app_folder import PACKAGE
from fairwave.federate.credentials import Authority
from fairwave.federate.device_file import DeviceFolder
from fairwave.federate.kit import write_kit
from fairwave.federate.settings import Settings
from fairwave.scenario.loading import load_scenario
from tests.federate.parties import REPEATABLE, TINY, Order, tiny


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "deployment"
    write_kit(folder, Agreement(tiny(), Settings()), ["ap.example.org", "192.0.2.7"], 8443, 30)
    return folder


def test_every_machine_has_a_folder(kit: Path) -> None:
    assert {path.name for path in kit.iterdir()} == {
        "README.md",
        "access-point",
        "authority",
        "node-0",
        "node-1",
        "node-2",
    }
    assert {path.name for path in (kit / "node-1").iterdir()} == {
        "agreement",
        "ca.crt",
        "compose.yaml",
        "device.toml",
        "node.key",
        "start.sh",
        "systemd",
    }
    assert {path.stem for path in (kit / "access-point" / "known_keys").iterdir()} == {"0", "1", "2"}


def test_a_device_is_configured_by_a_file_that_its_owner_can_read(kit: Path) -> None:
    for device in range(3):
        folder = DeviceFolder(kit / f"node-{device}")
        assert folder.file.device == device and folder.file.access_point == "ap.example.org:8443"
        assert folder.file.account == "~/.local/state/fairwave/account"
        assert folder.key.exists() and folder.authority.exists() and not folder.home.exists()
        assert folder.agreement() == Agreement(tiny(), Settings())
    assert "exec fairwave device run ." in (kit / "node-0" / "start.sh").read_text("utf-8")


def test_an_ipv6_address_stands_in_brackets(tmp_path: Path) -> None:
    write_kit(tmp_path / "kit", Agreement(tiny(), Settings()), ["2001:db8::7"], 8443, 30)
    assert DeviceFolder(tmp_path / "kit" / "node-0").file.access_point == "[2001:db8::7]:8443"


def test_the_authority_outlives_the_certificates_that_it_issues(kit: Path, tmp_path: Path) -> None:
    authority = x509.load_pem_x509_certificate((kit / "access-point" / "ca.crt").read_bytes())
    server = x509.load_pem_x509_certificate((kit / "access-point" / "server.crt").read_bytes())
    assert authority.not_valid_after_utc - server.not_valid_after_utc > datetime.timedelta(days=3000)
    with pytest.raises(ArgumentError, match="the authority's own certificate ends on"):
        Authority.make(30).issue(["localhost"], 31, tmp_path / "server.crt", tmp_path / "server.key")


def test_private_keys_are_private_and_where_they_belong(kit: Path) -> None:
    keys = {path.relative_to(kit).as_posix() for path in kit.rglob("*.key")}
    nodes = {f"node-{device}/node.key" for device in range(3)}
    assert keys == {"authority/ca.key", "access-point/server.key", "access-point/statement.key", *nodes}
    for path in kit.rglob("*.key"):
        assert path.stat().st_mode & 0o077 == 0, path
    for device in range(3):
        private = load_ssh_private_key((kit / f"node-{device}" / "node.key").read_bytes(), None)
        public = load_ssh_public_key((kit / "access-point" / "known_keys" / f"{device}.pub").read_bytes())
        assert private.public_key() == public


def test_the_access_point_can_sign_statements(kit: Path) -> None:
    private = load_pem_private_key((kit / "access-point" / "statement.key").read_bytes(), None)
    public = load_pem_public_key((kit / "access-point" / "statement.pub").read_bytes())
    assert isinstance(private, Ed25519PrivateKey) and isinstance(public, Ed25519PublicKey)
    public.verify(private.sign(b"a statement"), b"a statement")


def test_the_certificate_is_good_for_its_names_and_no_others(kit: Path) -> None:
    authority = x509.load_pem_x509_certificate((kit / "node-0" / "ca.crt").read_bytes())
    server = x509.load_pem_x509_certificate((kit / "access-point" / "server.crt").read_bytes())
    now, trusting = datetime.datetime.now(datetime.UTC), PolicyBuilder().store(Store([authority]))
    policy = trusting.time(now)
    for name in ("ap.example.org", "localhost"):
        policy.build_server_verifier(x509.DNSName(name)).verify(server, [])
    with pytest.raises(x509.verification.VerificationError):
        policy.build_server_verifier(x509.DNSName("elsewhere.example.org")).verify(server, [])
    late = trusting.time(now + datetime.timedelta(days=31))
    with pytest.raises(x509.verification.VerificationError):
        late.build_server_verifier(x509.DNSName("localhost")).verify(server, [])


def test_scripts_are_scripts(kit: Path) -> None:
    scripts = sorted(kit.rglob("*.sh"))
    assert len(scripts) == 8
    for script in scripts:
        assert script.stat().st_mode & 0o100
        done = subprocess.run(["sh", "-n", str(script)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        text = script.read_text("utf-8")
        for switch in ("FLWR_TELEMETRY_ENABLED=0", "FLWR_DISABLE_UPDATE_CHECK=1"):
            assert switch in text
    gate = (kit / "access-point" / "gate.conf").read_text("utf-8")
    assert gate.count("proxy_pass") == 1
    assert "location / { return 403; }" in gate
    assert "client_max_body_size 8m;" in gate and "$" not in gate.replace("$binary_remote_addr", "").replace(
        "$request_uri", ""
    ).replace("$request_method", "").replace("$host", "").replace("+$", "")
    assert "--host 127.0.0.1" in (kit / "access-point" / "start.sh").read_text("utf-8")


def test_the_app_holds_the_agreement(kit: Path) -> None:
    agreement = read_agreement(kit / "access-point" / "app" / PACKAGE)
    assert agreement == Agreement(tiny(), Settings())


def test_nothing_is_overwritten(kit: Path) -> None:
    with pytest.raises(OutputError, match="is not empty; choose a new folder"):
        write_kit(kit, Agreement(tiny(), Settings()), ["localhost"], 8443, 30)


def test_an_agreement_comes_back(tmp_path: Path) -> None:
    order = Order.checked(
        load_scenario("paper", [*TINY, "cell.mobility.law=none"]), ("proposed", "max_power"), (3, 5), 7
    )
    agreement = Agreement(order, REPEATABLE)
    write_agreement(tmp_path, agreement)
    assert read_agreement(tmp_path) == agreement


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("rounds = 3", "unknown key"),
        ("[settings]\ndead_line_s = 3", "settings.dead_line_s: unknown key; did you mean 'deadline_s'?"),
        ("[settings]\nquorum = 2.0", "settings.quorum: 2.0 is out of range"),
        ("[settings", "not valid TOML"),
    ],
)
def test_an_agreement_that_is_wrong_says_where(change: str, words: str, tmp_path: Path) -> None:
    write_agreement(tmp_path, Agreement(tiny(), REPEATABLE))
    text = 'schemes = ["proposed"]\nseeds = [0]\nrounds = 3\n' + change.replace("rounds = 3", "round = 3")
    (tmp_path / FEDERATION).write_text(text, "utf-8")
    with pytest.raises(ScenarioError, match=r"federation.toml") as error:
        read_agreement(tmp_path)
    assert words in str(error.value)
    assert (tmp_path / SCENARIO).exists()


@pytest.mark.parametrize(
    ("overrides", "settings", "words"),
    [
        (
            ('cheating.adversaries=[{behaviour="zero_update", devices=[0]}]',),
            REPEATABLE,
            "real devices are honest or not by themselves",
        ),
        ((), Settings(), "make both 'hardened', or both 'simulation'"),
    ],
)
def test_what_a_federation_cannot_do_is_refused(overrides: tuple[str, ...], settings: Settings, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        Agreement(tiny(*overrides, preset="fair-mlp"), settings)
