"""A federation in one process on a file system of its own that fills up: run by test_disk_full, in a child process.

The file system is a real one (tmpfs), so that SQLite's journal, temporary files and the log meet its end as they would
on a disk. Prints one JSON object per line: what the whole run took, and how each try and its resumption ended.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np

from fairwave.errors import FairwaveError
from fairwave.federate.agreement import Agreement
from fairwave.federate.client_app import app_of
from fairwave.federate.client_state import DIGEST
from fairwave.federate.in_process import federate_in_process
from fairwave.federate.settings import Settings
from fairwave.runs.folder import DEVICES
from fairwave.runs.packing import unpack
from fairwave.runs.store import RunStore
from tests.federate.parties import TRACK, outcome, tiny

ROOMY = 1 << 28
PAGE, ROUNDS = 4096, 3


def main() -> None:
    """The whole run, then one for each tenth of its size; with noise that repeats, and with noise that is charged."""
    disk = Path(sys.argv[1])
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOMY}", "tmpfs", disk], check=True)
    for kind in ("repeatable", "hardened"):
        folder = disk / "whole"
        end = _federated(kind, folder)
        took = sum(-(-path.stat().st_size // PAGE) * PAGE for path in folder.rglob("*") if path.is_file())
        expected = _content(folder)
        _tell({"kind": kind, "took": took, "end": end})
        shutil.rmtree(folder)
        for tenth in range(1, 11):
            folder = disk / "run"
            _resize(disk, tenth * took // 10)
            full = _federated(kind, folder)
            _resize(disk, ROOMY)
            again = _federated(kind, folder)
            told = {"kind": kind, "tenth": tenth, "full": full, "again": again}
            if not again:
                told |= {"same": _content(folder) == expected, **_ledger(folder)}
            _tell(told)
            shutil.rmtree(folder)


def _tell(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _resize(disk: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


def _federated(kind: str, folder: Path) -> dict[str, object]:
    """Nothing if it ran to its end; otherwise what stopped it."""
    if kind == "repeatable":
        order, noise = tiny(rounds=ROUNDS), "simulation"
    else:
        order = tiny("privacy.noise_source=hardened", "privacy.max_epsilon=unset", preset="fair-mlp", rounds=ROUNDS)
        noise = "hardened"
    settings = {"noise": noise, "energy": "model", "deadline_s": 30.0, "patience": 1, "wait_s": 1.0, "quorum": 1.0}
    agreed = Agreement(order, Settings.model_validate(settings))
    try:
        federate_in_process(agreed, folder, "test", app=app_of(lambda: agreed, folder / DEVICES))
    except FairwaveError as error:
        return {"error": type(error).__name__, "exit_code": error.exit_code, "text": str(error)}
    except BaseException as error:
        return {"error": type(error).__name__, "exit_code": 1, "text": traceback.format_exc()[-1500:]}
    return {}


def _content(folder: Path) -> list[str]:
    """A digest of the checkpoint and of what every round did, without times."""
    store = RunStore(folder)
    state = store.checkpoint(TRACK) or b""
    records = store.records(TRACK)
    store.close()
    names = ("deviation", "delivered", "participating", "received_accuracy", "test_accuracy")
    return [
        hashlib.sha256(state).hexdigest(),
        *(str(np.asarray(record[name]).tolist()) for record in records for name in names),
    ]


def _ledger(folder: Path) -> dict[str, list[int]]:
    """Steps charged to each device, and what the devices' states say has left them."""
    charged = np.zeros(3, int)
    for event in outcome(folder).of("update"):
        charged[event.devices] += event.steps
    states = sorted((folder / DEVICES).rglob("*.state"))
    held = [unpack(path.read_bytes().split(b"\n", 1)[1][DIGEST:]) for path in states]
    return {"charged": charged.tolist(), "released": [int(each["spent"]) for each in held]}


if __name__ == "__main__":
    main()
