"""The folder of a run: found, made, and kept to one scenario."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import OutputError, StoreError
from fairwave.runs.database import FILE, LOCK
from fairwave.runs.order import Order
from fairwave.runs.store import UNBORN, RunStore

PACKAGES = ("fairwave", "jax", "jaxlib", "numpy")
FEDERATION = "federation"
"""Kind of a run that devices take part in over a network; those without a kind are simulations."""
LOG, SECRET = "federation.jsonl", "release.key"
"""Of a federation: what happened, line by line, and the root of the access point's noise."""
DEVICES, MODELS, LOGS = "devices", "models", "logs"
"""Folders of a federation: diaries of devices on the same machine; trained models; logs of Flower's programs."""


def planned(order: Order, folder: Path) -> Order:
    """What a folder will hold once the order is done: the order, and what is there already."""
    if not holds_run(folder):
        return order
    store = RunStore(folder)
    stored = store.order
    store.close()
    refuse_another_scenario(folder, stored, order)
    return Order(
        stored.scenario,
        tuple(dict.fromkeys((*stored.schemes, *order.schemes))),
        tuple(dict.fromkeys((*stored.seeds, *order.seeds))),
        max(stored.rounds, order.rounds),
    )


def holds_run(folder: Path) -> bool:
    """Whether there is a run in a folder; an error if it cannot be one."""
    try:
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: is a file, not a folder; choose another --out")
        return (folder / FILE).exists()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be used ({error.strerror}); choose another --out") from None


def make_folder(folder: Path, known: Sequence[str] = ()) -> None:
    """A folder for a run: a new one, or one that holds nothing but what an earlier start may have left."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [
            path.name
            for path in folder.iterdir()
            if path.name not in (LOCK, *known) and not path.name.startswith(UNBORN)
        ]
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}); choose another --out") from None
    if foreign:
        raise StoreError(f"{folder}: holds files but no run ({foreign[0]}); choose another --out, or an empty folder")


def is_federation(store: RunStore) -> bool:
    """Whether devices took part over a network."""
    return store.about.get("kind") == FEDERATION


def refuse_federation(store: RunStore) -> None:
    """A federation's devices are elsewhere: nothing here could go on with it."""
    if is_federation(store):
        raise StoreError(
            f"{store.folder}: holds a federation; go on with it by the command that began it: {store.about['command']}"
        )


def refuse_another_scenario(folder: Path, stored: Order, order: Order) -> None:
    """A folder holds rounds of one scenario only; how many, and from which seed, may be asked for later."""
    there, here = (each.scenario.model_dump(mode="json") for each in (stored, order))
    for group, values in here.items():
        for name, value in values.items():
            held = there[group].get(name)
            if (group, name) not in (("run", "seed"), ("run", "num_rounds")) and held != value:
                raise StoreError(
                    f"{folder}: holds a run with {group}.{name} = {held}, not {value}; choose another --out"
                )


def surroundings() -> dict[str, str]:
    """What bits may depend on besides the scenario."""
    versions = {f"version of {name}": importlib.metadata.version(name) for name in PACKAGES}
    machine = f"{platform.machine()} {platform.system()}, {_backend()}"
    return {"machine": machine, **versions, "version of python": platform.python_version()}


def _backend() -> str:
    import jax

    return str(jax.devices()[0].device_kind) if jax.default_backend() != "cpu" else "CPU"
