"""Where each candidate runs: fairwave and NumPy where the harness does, every peer in an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
FOLDER = ROOT / "build" / "peers"
OWN = "fairwave"
PINNED = {
    "pytorch": ("torch==2.13.0", "numpy>=2"),
    "flower": ("flwr[simulation]==1.41.0", "torch==2.13.0"),
    "pfl": ("pfl[pytorch]==0.6.0", "torch==2.13.0"),
    "fedjax": ("fedjax==0.0.17", "jax==0.4.25", "jaxlib==0.4.25", "dm-haiku==0.0.11", "numpy<2", "scipy<1.13"),
}
"""What is installed for each peer; FedJAX fails on first use with any JAX that is much newer."""
TOLD = ("fairwave", "flwr", "ray", "pfl", "fedjax", "torch", "jax", "jaxlib", "numpy")
INSTALL_LIMIT_S = 1_800


class Failed(Exception):
    """A candidate cannot be made, has ended, or said nothing for too long."""


def program(environment: str, name: str = "python") -> str:
    """A program of an environment, which is made on first use."""
    if environment == OWN:
        return sys.executable
    folder = FOLDER / environment
    if not (folder / "bin" / "python").exists():
        _make(folder, PINNED[environment])
    return str(folder / "bin" / name)


def _make(folder: Path, packages: tuple[str, ...]) -> None:
    print(f"making {folder.relative_to(ROOT)}: {', '.join(packages)}", flush=True)
    python = str(folder / "bin" / "python")
    try:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_LIMIT_S)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True, timeout=INSTALL_LIMIT_S)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)  # half an environment would look like a whole one next time
        if isinstance(error, subprocess.SubprocessError):
            raise Failed(f"{', '.join(packages)} cannot be installed here") from None
        raise


def variables(environment: str, **more: str) -> dict[str, str]:
    """Of a candidate's process: peers do not see fairwave's packages, and nobody reports its use to anywhere.

    Compiled programs are not kept: start-up is what a user sees the first time.
    """
    kept = {name: value for name, value in os.environ.items() if environment == OWN or name != "PYTHONPATH"}
    silent = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONUNBUFFERED": "1"}
    return kept | silent | {"JAX_ENABLE_COMPILATION_CACHE": "false"} | more


def versions(environment: str) -> dict[str, str]:
    """Of the packages that matter."""
    ask = (
        "import importlib.metadata as m, json, sys\n"
        "found = {d.metadata['Name'].lower(): d.version for d in m.distributions()}\n"
        "print(json.dumps({n: found[n] for n in sys.argv[1:] if n in found}))"
    )
    told = subprocess.run(
        [program(environment), "-c", ask, *TOLD],
        env=variables(environment),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return dict(json.loads(told.stdout))
