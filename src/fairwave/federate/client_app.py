"""The device as a Flower ClientApp.

A node is configured by `partition-id` (which device it is), `home` (a private folder for its state), and optionally
`key` (its private key, to prove who it is) and `data` (a data set of its own).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from fairwave.data.sources import load
from fairwave.errors import FairwaveError, FederationError
from fairwave.federate.agreement import Agreement, read_agreement
from fairwave.federate.client import DeviceClient
from fairwave.federate.device_keys import sign
from fairwave.federate.flower_records import HELLO, Unreadable, answer_to_records, task_from_records, value
from fairwave.federate.protocol import VERSION, Task
from fairwave.federate.setup import device_client
from fairwave.runs.order import Track
from fairwave.scenario.partition_laws import Own

CACHE = "compiled"
_NAME = re.compile("[0-9a-f]{16}")


def client_app(folder: Path) -> ClientApp:
    """The app of a folder that holds an agreement; compiled programs are kept in the node's home."""
    return app_of(lambda: read_agreement(folder), keeps_programs=True)


def app_of(agreement: Callable[[], Agreement], home: Path | None = None, *, keeps_programs: bool = False) -> ClientApp:
    """A ClientApp; `home` serves nodes that have none of their own."""
    app, clients, load_once = ClientApp(), dict[object, DeviceClient](), functools.cache(load)

    def reply(message: Message, context: Context) -> Message:
        try:
            task = task_from_records(message.content)
            device, own_home = int(context.node_config["partition-id"]), _home(context, home)
            if keeps_programs:
                _keep_programs(own_home / CACHE)
            which = (task.federation, task.scheme, task.seed, device)
            if which not in clients:
                agreed = agreement()
                _check(task, agreed, context)
                data = load_once(str(context.node_config.get("data", agreed.order.scenario.data.source)))
                state_file = own_home / f"device-{device}" / task.federation / f"{task.scheme}-{task.seed}.state"
                track = Track(task.scheme, task.seed)
                clients[which] = device_client(agreed.order, agreed.settings, track, device, data, state_file)
            answer = clients[which].answer(task)
        except (Unreadable, FairwaveError):
            raise
        except Exception as error:  # its text may quote data, and would travel to the access point
            raise FederationError(f"the device failed with {type(error).__name__}") from None
        return Message(answer_to_records(answer), reply_to=message)

    @app.query("hello")
    def hello(message: Message, context: Context) -> Message:
        asked = message.content[HELLO]
        device, key = int(context.node_config["partition-id"]), context.node_config.get("key")
        introduction: dict[str, Any] = {"version": VERSION, "partition-id": device, "signature": b""}
        if key is not None and isinstance(asked, ConfigRecord):
            introduction["signature"] = sign(Path(str(key)), device, value(asked, "question", bytes))
        return Message(RecordDict({HELLO: ConfigRecord(introduction)}), reply_to=message)

    app.train("gradient")(reply)
    app.train("update")(reply)
    return app


def _check(task: Task, agreed: Agreement, context: Context) -> None:
    """Refuse what was not agreed on, before its name becomes that of a file."""
    if not _NAME.fullmatch(task.federation) or Track(task.scheme, task.seed) not in list(agreed.order.tracks()):
        raise FederationError("the task is of another federation, scheme or seed than was agreed")
    if isinstance(agreed.order.scenario.data.partition, Own) and "data" not in context.node_config:
        raise FederationError("node-config: no 'data', and data.partition says that devices bring their own")


def _home(context: Context, otherwise: Path | None) -> Path:
    given = context.node_config.get("home")
    if given is None and otherwise is None:
        raise FederationError("node-config: no 'home'; give the device a private folder for its state")
    return Path(str(given)) if given is not None else Path(str(otherwise))


def _keep_programs(folder: Path) -> None:
    """Flower starts a process for every message: without this, each would compile everything again."""
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]
