"""Test vectors of docs/wire.md: python docs/wire_vectors.py writes docs/wire_vectors.json.

A signature with ECDSA is another one every time, so that those in the file are kept as long as they are valid.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fairwave.federate.device_keys import spoken
from fairwave.federate.flower_records import ARRAYS, FLAT, HELLO
from fairwave.federate.protocol import VERSION
from fairwave.learning.named_arrays import flattened
from fairwave.learning.rounding import restored, rounded

FILE = Path(__file__).with_name("wire_vectors.json")
DEVICE, QUESTION, STAMP = 7, bytes(range(16)), "2026-01-02T03:04:05+00:00"


def vectors(kept: dict[str, Any]) -> dict[str, Any]:
    """All vectors; signatures of `kept` stay if they are still valid."""
    key = ec.derive_private_key(0xFA12, ec.SECP384R1())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    small = {"0.bias": np.array([1.0, 2.0], "f4"), "0.weight": np.array([[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], "f4")}
    values = np.array([0.0, 1.0, -1.0, 0.3, 127.0, 2.0**-20], "f4")
    sent = np.asarray(rounded(values, jax.random.key(0)))
    question = RecordDict({HELLO: ConfigRecord({"version": VERSION, "question": QUESTION})})
    arrays = RecordDict({ARRAYS: ArrayRecord({FLAT: Array(flattened(small, small))})})
    return {
        "hello": {
            "device": DEVICE,
            "public_key": public.decode(),
            "question_hex": QUESTION.hex(),
            "signed_text_hex": spoken(DEVICE, QUESTION).hex(),
            "signature_hex": _signature(key, spoken(DEVICE, QUESTION), hashes.SHA384(), kept.get("hello")),
        },
        "request": {
            "timestamp": STAMP,
            "signature_hex": _signature(key, STAMP.encode(), hashes.SHA256(), kept.get("request")),
        },
        "flat": {
            "arrays": {name: array.tolist() for name, array in small.items()},
            "flat": flattened(small, small).tolist(),
        },
        "eight_bits": {
            "sent": sent.tolist(),
            "values": np.asarray(restored(sent, values.size)).tolist(),
        },
        "objects": {
            "a question": {name: content.hex() for name, content in _objects(question).items()},
            "arrays": {name: content.hex() for name, content in _objects(arrays).items()},
        },
    }


def _signature(key: ec.EllipticCurvePrivateKey, text: bytes, used: hashes.HashAlgorithm, kept: Any) -> str:
    if kept:
        try:
            key.public_key().verify(bytes.fromhex(kept["signature_hex"]), text, ec.ECDSA(used))
        except InvalidSignature:
            pass
        else:
            return str(kept["signature_hex"])
    return key.sign(text, ec.ECDSA(used)).hex()


def _objects(content: Any) -> dict[str, bytes]:
    """A content and all that it consists of, by name."""
    found = {}
    for child in (content.children or {}).values():
        found |= _objects(child)
    return {**found, content.object_id: content.deflate()}


if __name__ == "__main__":
    before = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    FILE.write_text(json.dumps(vectors(before), indent=1) + "\n", "utf-8")
