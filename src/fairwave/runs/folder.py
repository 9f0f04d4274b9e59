"""The folder of a run: found, made, and kept to one scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fairwave.errors import OutputError, StoreError
from fairwave.runs.database import FILE, LOCK
from fairwave.runs.order import Order
from fairwave.runs.salt import FILE as SALT
from fairwave.runs.starting_model import StartingModel
from fairwave.runs.store import UNBORN, RunStore, no_run_in

FEDERATION = "federation"
"""Kind of a run that devices take part in over a network; those without a kind are simulations."""
LOG, SECRET = "federation.jsonl", "release.key"
"""Files of a federation: what happened, line by line, and the root of the access point's noise."""
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
    plugins = tuple(dict.fromkeys((*stored.scenario.plugins, *order.scenario.plugins)))
    return Order(
        stored.scenario.model_copy(update={"plugins": plugins}),
        tuple(dict.fromkeys((*stored.schemes, *order.schemes))),
        tuple(dict.fromkeys((*stored.seeds, *order.seeds))),
        max(stored.rounds, order.rounds),
        order.init_from,
    )


def holds_run(folder: Path) -> bool:
    """Whether there is a run in a folder; an error if it cannot be one."""
    try:
        if folder.name == FILE and folder.is_file():
            raise no_run_in(folder)
        if folder.exists() and not folder.is_dir():
            raise OutputError(f"{folder}: is a file, not a folder; choose another --out")
        return (folder / FILE).exists()
    except OSError as error:
        raise OutputError(f"{folder}: cannot be used ({error.strerror}); choose another --out") from None


def make_folder(folder: Path, known: Sequence[str] = (), *, private: bool = False) -> None:
    """A folder for a run: a new one, or one that holds nothing but what an earlier start may have left.

    A private one is for its owner alone.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = [
            path.name
            for path in folder.iterdir()
            if path.name not in (LOCK, SALT, *known) and not path.name.startswith(UNBORN)
        ]
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}); choose another --out") from None
    if foreign:
        raise StoreError(f"{folder}: holds files but no run ({foreign[0]}); choose another --out, or an empty folder")
    if private:
        folder.chmod(0o700)


def is_federation(store: RunStore) -> bool:
    """Whether devices took part over a network."""
    return store.about.get("kind") == FEDERATION


def refuse_federation(store: RunStore) -> None:
    """A federation's devices are elsewhere: nothing here could go on with it."""
    if is_federation(store):
        raise StoreError(
            f"{store.folder}: holds a federation; resume it with the command that started it: {last_command(store)}"
        )


def last_command(store: RunStore) -> str:
    """The command that worked on a run last."""
    return store.history()[-1].command if store.history() else "fairwave"


def refuse_another_scenario(folder: Path, stored: Order, order: Order) -> None:
    """A folder holds rounds of one scenario only; how many, and from which seed, may be asked for later."""
    there, here = (each.scenario.model_dump(mode="json", exclude={"plugins"}) for each in (stored, order))
    differing = [
        (f"{group}.{name}", there[group].get(name), value)
        for group, values in here.items()
        for name, value in values.items()
        if (group, name) not in (("run", "seed"), ("run", "num_rounds")) and there[group].get(name) != value
    ]
    if differing:
        name, held, value = differing[0]
        more = f" ({len(differing)} parameters differ)" if len(differing) > 1 else ""
        raise StoreError(
            f"{folder}: holds a run of another scenario, with {name} = {held}, not {value}{more}; choose another --out"
        )
    if stored.init_from != order.init_from:
        held_first, asked = (_in_words(each.init_from) for each in (stored, order))
        raise StoreError(f"{folder}: holds a run that began with {held_first}, not with {asked}; choose another --out")


def _in_words(first: StartingModel | None) -> str:
    """The model that a run begins with."""
    return "the scenario's own first model" if first is None else f"model {first.path} (digest {first.digest[:12]})"
