"""A device's own connection to the SuperLink, over Flower's Fleet API: no SuperNode, and no program per message.

This is the only file of the device that uses modules of Flower which it does not document; a test fails when they
change. What it sends is what Flower's own SuperNode sends, and the SuperLink is Flower's, unchanged.
"""

from __future__ import annotations

import base64
import datetime
import email.utils
import ssl
import time
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Message, RecordDict
from flwr.app.message.message import make_message, remove_content_from_message
from flwr.app.metadata import Metadata
from flwr.common.constant import HEARTBEAT_DEFAULT_INTERVAL, TIMESTAMP_HEADER
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import (
    ActivateNodeRequest,
    DeactivateNodeRequest,
    PullMessagesRequest,
    PushMessagesRequest,
)
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest, PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    iterate_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.supercore.protobuf.client import ProtobufCall, ProtobufRequestContext
from flwr.supercore.runtime_version_compatibility import RuntimeVersionMetadata
from flwr.supernode.fleet_http_client import FleetHttpClient

from fairwave.errors import FederationError
from fairwave.federate.device_keys import private_key
from fairwave.federate.link_errors import LinkError, Trouble, named, persistently

HEARTBEAT_S = float(HEARTBEAT_DEFAULT_INTERVAL)
"""How often the SuperLink wants to hear from a device; after twice as long it takes the device for gone."""
MOST_OBJECTS = 1_000
"""Parts that a message may consist of; a message of an access point that keeps to the protocol has a few."""
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.05, 1.0


class FleetLink:
    """One device's connection; its functions may be called from several threads."""

    def __init__(self, address: str, authority: Path, key_file: Path) -> None:
        """Reads the files; nothing is sent yet."""
        key = private_key(key_file)
        self._public = public_key_to_bytes(key.public_key())
        self._address, self._signer = address, _Signer(key, self._public)
        try:
            authority_pem = authority.read_bytes()
            self._client = FleetHttpClient.from_server_address(address, False, authority_pem, [self._signer])
        except (OSError, ssl.SSLError, UnicodeError, ValueError):
            raise FederationError(
                f"{authority}: no certificate of an authority; restore the one that came with the device's folder"
            ) from None
        self._node: Node | None = None

    @property
    def clock_offset_s(self) -> float:
        """How far the access point's clock is ahead of this machine's; signatures carry the access point's time."""
        return self._signer.offset_s

    def connect(self, known: int | None) -> int:
        """Become a node of the SuperLink; `known` is the node that this device was before.

        A device that was killed has had no time to say goodbye, and the SuperLink would refuse it for a minute: it
        goes on as the node that it was. One whose clock is wrong is refused once, and then knows the right time.
        """
        try:
            return self._connected(known)
        except LinkError:
            if self.clock_offset_s == 0.0:
                raise
            return self._connected(known)

    def _connected(self, known: int | None) -> int:
        if known is not None and self._still_there(known):
            self._node = Node(node_id=known)
            return known
        request = ActivateNodeRequest(public_key=self._public, heartbeat_interval=HEARTBEAT_S)
        with named(self._address):
            self._node = Node(node_id=self._client.ActivateNode(request).node_id)
        return int(self._node.node_id)

    def _still_there(self, known: int) -> bool:
        self._node = Node(node_id=known)
        try:
            self.heartbeat()
        except LinkError as error:
            if error.trouble is not Trouble.REFUSED:
                raise
            return False
        return True

    def heartbeat(self) -> None:
        """Tell the SuperLink that this device is there."""
        request = SendNodeHeartbeatRequest(node=self._node, heartbeat_interval=HEARTBEAT_S)
        with named(self._address):
            response = self._client.SendNodeHeartbeat(request)
        if not response.success:
            raise LinkError(Trouble.REFUSED, f"{self._address}: the SuperLink does not know this device any more")

    def receive(self) -> Message | None:
        """The next message for this device, whole; None if there is none."""
        with named(self._address):
            response = self._client.PullMessages(PullMessagesRequest(node=self._node))
            if not response.messages_list:
                return None
            metadata, tree = response.messages_list[0].metadata, response.message_object_trees[0]
            names = [part.object_id for part in iterate_object_tree(tree)]
            if len(names) > MOST_OBJECTS:
                raise LinkError(Trouble.UNREADABLE, f"{self._address}: a message of {len(names)} parts")
            expires = metadata.created_at + metadata.ttl
            parts = {name: self._pull(metadata.run_id, name, expires) for name in dict.fromkeys(names)}
            received = ConfirmMessageReceivedRequest(
                node=self._node, run_id=metadata.run_id, message_object_id=tree.object_id
            )
            persistently(self._client.ConfirmMessageReceived, received)
            message = inflate_object_from_contents(tree.object_id, parts)
        if not isinstance(message, Message) or not message.has_content():
            raise LinkError(Trouble.UNREADABLE, f"{self._address}: a message without content")
        message.metadata.__dict__["_message_id"] = metadata.message_id
        return message

    def _pull(self, run: int, name: str, expires: float) -> bytes:
        """A part of a message, which the access point may still be sending when the message is announced."""
        pause_s = _FIRST_LOOK_S
        while True:
            request = PullObjectRequest(node=self._node, run_id=run, object_id=name)
            response = persistently(self._client.PullObject, request)
            if response.object_found and response.object_available:
                return bytes(response.object_content)
            if not response.object_found or self._signer.now() + pause_s > expires:
                raise LinkError(Trouble.UNREADABLE, f"{self._address}: a message that is not there in full")
            time.sleep(pause_s)
            pause_s = min(2.0 * pause_s, _LONGEST_LOOK_S)

    def reply(self, question: Message, content: RecordDict, worked_s: float) -> None:
        """Send the reply to a message; a reply that comes too late for the SuperLink is dropped there."""
        reply = make_message(_reply_metadata(question, self._signer.now()), content=content)
        with no_object_id_recompute():
            reply.metadata.__dict__["_message_id"] = reply.object_id
            tree = get_object_tree(reply)
            parts = {name: part.deflate() for name, part in get_all_nested_objects(reply).items()}
        announced = PushMessagesRequest(
            node=self._node,
            messages_list=[message_to_proto(remove_content_from_message(reply))],
            message_object_trees=[tree],
            clientapp_runtime_list=[worked_s],
        )
        with named(self._address):
            response = persistently(self._client.PushMessages, announced)
            for name in response.objects_to_push:
                part = PushObjectRequest(
                    node=self._node,
                    run_id=question.metadata.run_id,
                    object_id=name,
                    object_content=parts[name],
                    session_id=response.session_id,
                )
                persistently(self._client.PushObject, part)

    def close(self, *, goodbye: bool) -> None:
        """End the connection; with a goodbye, the SuperLink knows at once that the device is gone."""
        try:
            if goodbye and self._node is not None:
                with named(self._address):
                    self._client.DeactivateNode(DeactivateNodeRequest(node_id=self._node.node_id))
        except LinkError:
            pass  # it will notice by itself
        finally:
            self._node = None
            self._client.close()


class _Signer:
    """Signs every request with the time, as the SuperLink wants it, and keeps to the access point's clock."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, public: bytes) -> None:
        self._key, self._public = key, base64.b64encode(public).decode("ascii")
        self._versions = dict(RuntimeVersionMetadata.from_local_component("SuperNode").as_metadata())
        self.offset_s = 0.0

    def now(self) -> float:
        """The access point's time."""
        return time.time() + self.offset_s

    def intercept(self, context: ProtobufRequestContext, call_next: ProtobufCall) -> httpx.Response:
        """Add what authenticates a request; read the access point's clock from the response."""
        stamp = datetime.datetime.fromtimestamp(self.now(), datetime.UTC).isoformat()
        signature = base64.b64encode(sign_message(self._key, stamp.encode("ascii"))).decode("ascii")
        own = {FLEET_HTTP_PUBLIC_KEY_HEADER: self._public, TIMESTAMP_HEADER: stamp}
        context.request.headers.update({**self._versions, **own, FLEET_HTTP_SIGNATURE_HEADER: signature})
        response = call_next(context)
        self._keep_time(response.headers.get("date"))
        return response

    def _keep_time(self, date: str | None) -> None:
        """Follow a clock that differs by more than the header's resolution and a slow answer explain."""
        try:
            seconds = email.utils.parsedate_to_datetime(date or "").timestamp()
        except ValueError:
            return
        offset_s = seconds + 0.5 - time.time()
        if abs(offset_s - self.offset_s) > _CLOCK_TOLERANCE_S:
            self.offset_s = offset_s if abs(offset_s) > _CLOCK_TOLERANCE_S else 0.0


_CLOCK_TOLERANCE_S = 3.0
"""The SuperLink accepts a signature from 5 s in its future."""


def _reply_metadata(question: Message, now: float) -> Metadata:
    asked = question.metadata
    return Metadata(
        run_id=asked.run_id,
        message_id="",
        src_node_id=asked.dst_node_id,
        dst_node_id=asked.src_node_id,
        reply_to_message_id=asked.message_id,
        group_id=asked.group_id,
        created_at=now,
        ttl=asked.created_at + asked.ttl - now,
        message_type=asked.message_type,
        src_task_id=asked.dst_task_id,
        dst_task_id=asked.src_task_id,
    )
