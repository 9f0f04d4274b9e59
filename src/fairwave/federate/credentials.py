"""Certificates and keys of a federation: an authority of its own, the access point's certificate, a key per device."""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairwave.errors import ArgumentError
from fairwave.private_files import replace_file, write_private

CURVE = ec.SECP384R1()
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*")
AUTHORITY_DAYS = 3650
"""How long an authority lasts: longer than the certificates that it issues, so that they can be renewed in time."""
_SKEW = datetime.timedelta(minutes=5)
"""Clocks differ: a certificate is valid a little before it was made."""


@dataclasses.dataclass(frozen=True)
class Authority:
    """Who vouches for the access point's certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, days: int) -> Authority:
        """A new one."""
        key, name = ec.generate_private_key(CURVE), _name("fairwave federation authority")
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        certificate = (
            _builder(name, name, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA384())
        )
        return cls(key, certificate)

    @classmethod
    def read(cls, certificate: Path, key: Path) -> Authority:
        """The one in two files."""
        try:
            held, own = x509.load_pem_x509_certificate(certificate.read_bytes()), key.read_bytes()
            private = serialization.load_pem_private_key(own, None)
        except OSError as error:
            raise ArgumentError(
                f"{error.filename}: cannot be read ({error.strerror}); give --authority the file authority/ca.key that "
                "'fairwave federate init' made"
            ) from None
        except (ValueError, TypeError):
            raise ArgumentError(f"{key}: holds no plain private key; restore authority/ca.key") from None
        if not isinstance(private, ec.EllipticCurvePrivateKey) or private.public_key() != held.public_key():
            raise ArgumentError(f"{key}: is not the key of {certificate}; restore authority/ca.key")
        return cls(private, held)

    def write(self, certificate: Path, key: Path | None = None) -> None:
        """The certificate for everybody, the key for a safe place."""
        certificate.write_bytes(_pem(self.certificate))
        if key is not None:
            write_private(key, _private_pem(self.key))

    def issue(self, hosts: Sequence[str], days: int, certificate: Path, key: Path) -> None:
        """A certificate for a server that is reached under these names and addresses; one that is there is replaced."""
        ends = self.certificate.not_valid_after_utc
        if datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days) > ends:
            raise ArgumentError(f"--days {days}: the authority's own certificate ends on {ends:%Y-%m-%d}; give fewer")
        own, named = ec.generate_private_key(CURVE), _name("fairwave access point")
        issued = (
            _builder(named, self.certificate.subject, own.public_key(), days)
            .add_extension(
                x509.SubjectAlternativeName([_address(host) for host in dict.fromkeys(hosts)]), critical=False
            )
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA384())
        )
        replace_file(key, _private_pem(own))
        replace_file(certificate, _pem(issued), 0o644)


def make_device_key(private: Path, public: Path) -> None:
    """A device's key pair, as Flower and OpenSSH read it."""
    key, encoding = ec.generate_private_key(CURVE), serialization.Encoding
    form, plain = serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    write_private(private, key.private_bytes(encoding.PEM, form, plain))
    form_of_public = serialization.PublicFormat.OpenSSH
    # A federation may be running that reads the keys: it finds a whole one, or none.
    replace_file(public, key.public_key().public_bytes(encoding.OpenSSH, form_of_public) + b"\n", 0o644)


def hosts_of(certificate: Path) -> list[str]:
    """The names and addresses that a certificate is good for."""
    held = x509.load_pem_x509_certificate(certificate.read_bytes())
    names = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in names]


def check_host(host: str) -> None:
    """Refuse what is neither an address nor a name that a certificate and a shell can hold."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if not _HOST.fullmatch(host) or len(host) > 253:
            raise ArgumentError(
                f"--host {host!r}: neither an address nor a host name; give one such as ap.example.org or 192.0.2.7"
            ) from None


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _address(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
