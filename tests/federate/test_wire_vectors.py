"""The test vectors of docs/wire.md are those of the code, and the page names every field and path that there is."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fairwave.federate.device_keys import spoken
from fairwave.federate.flower_records import ANSWER, TASK, answer_to_records, task_to_records
from fairwave.federate.protocol import VERSION, Answer, Phase, Reason, Status, Task

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def held() -> dict[str, dict]:
    return json.loads((DOCS / "wire_vectors.json").read_text("utf-8"))


def test_the_vectors_are_those_of_the_code(held: dict[str, dict]) -> None:
    spec = importlib.util.spec_from_file_location("wire_vectors", DOCS / "wire_vectors.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.vectors(held) == held


def test_signatures_are_valid_and_of_nothing_else(held: dict[str, dict]) -> None:
    """Verified here from what the page says, not with the code that made them."""
    hello, request = held["hello"], held["request"]
    key = serialization.load_ssh_public_key(hello["public_key"].encode())
    assert isinstance(key, ec.EllipticCurvePublicKey)
    text = f"fairwave device {hello['device']}: ".encode() + bytes.fromhex(hello["question_hex"])
    key.verify(bytes.fromhex(hello["signature_hex"]), text, ec.ECDSA(hashes.SHA384()))
    key.verify(bytes.fromhex(request["signature_hex"]), request["timestamp"].encode(), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        key.verify(bytes.fromhex(hello["signature_hex"]), spoken(8, b"x"), ec.ECDSA(hashes.SHA384()))


def test_objects_are_named_by_their_content_and_name_their_children(held: dict[str, dict]) -> None:
    for objects in held["objects"].values():
        for name, content in objects.items():
            raw = bytes.fromhex(content)
            assert hashlib.sha256(raw).hexdigest() == name
            head, _, body = raw.partition(b"\0")
            kind, children, length = head.decode().split(" ")
            assert kind in ("RecordDict", "ConfigRecord", "ArrayRecord", "Array", "ArrayChunk")
            assert int(length) == len(body)
            assert all(child in objects for child in children.split(",") if child)


def test_eight_bits_are_as_the_page_says(held: dict[str, dict]) -> None:
    sent, values = held["eight_bits"]["sent"], held["eight_bits"]["values"]
    size = len(values)
    assert [level * 2.0 ** sent[size] for level in sent[:size]] == values
    assert np.ravel([held["flat"]["arrays"][name] for name in ("0.bias",)]).tolist() == held["flat"]["flat"][:2]


def test_the_page_names_every_field_word_and_path() -> None:
    page = (DOCS / "wire.md").read_text("utf-8")
    task = Task("0" * 16, "proposed", 0, b"", 0, Phase.UPDATE, 0.0, -1, -1, np.zeros(1, "f4"), None)
    fields = [*task_to_records(task)[TASK], *answer_to_records(Answer(0, Status.SENT))[ANSWER]]
    for word in (*fields, *map(str, Status), *map(str, Reason), *map(str, Phase)):
        assert f"`{word}`" in page, word
    source = (DOCS.parent / "src" / "fairwave" / "federate" / "fleet_link.py").read_text("utf-8")
    called = set(re.findall(r"_client\.([A-Z]\w+)", source))
    for name in called:
        assert "-".join(re.findall("[A-Z][a-z]+", name)).lower() in page, name
    assert f"`version` (whole, {VERSION})" in page
