"""The device as a Flower ClientApp.

A node is configured by `partition-id` (which device it is), `home` (a private folder for its state), and optionally
`key` (its private key, to prove who it is), `data` (a data set of its own), `account` (a folder for the privacy
account of all federations on its records), and `budget-epsilon` with `budget-delta` (what all of them together may
spend of its records).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flwr.app import Message, RecordDict
from flwr.clientapp import ClientApp

from fairwave.federate.agreement import Agreement, read_agreement
from fairwave.federate.answering import Answering
from fairwave.federate.node import Node


def client_app(folder: Path) -> ClientApp:
    """The app of a folder that holds an agreement; compiled programs are kept in the node's home."""
    return app_of(lambda: read_agreement(folder), keeps_programs=True)


def app_of(agreement: Callable[[], Agreement], home: Path | None = None, *, keeps_programs: bool = False) -> ClientApp:
    """A ClientApp; `home` serves nodes that have none of their own."""
    app, answering = ClientApp(), Answering(agreement, home, keeps_programs=keeps_programs)

    def replying(replied: Callable[[RecordDict, Callable[[], Node]], RecordDict]) -> Callable[..., Message]:
        return lambda message, context: Message(
            replied(message.content, lambda: Node.of(context, home)), reply_to=message
        )

    app.query("hello")(replying(answering.introduction))
    app.train("gradient")(replying(answering.answer))
    app.train("update")(replying(answering.answer))
    return app
