"""A device in PyTorch that lives on a network: it speaks the protocol of docs/wire.md, and learns with its own code.

    pip install "fairwave[flower]" torch==2.13.0
    fairwave device check 127.0.0.1:8443 --folder check &
    python examples/torch_client.py check/node-0

Of fairwave it uses the connection to the access point (`FleetLink`) and the bundled data; everything else is here: the
network, its training, which questions it answers, and the state that it keeps. It protects no records: a federation
with `privacy.mode = "provable"` asks for clipping, noise and accounts, which a client in another framework has to bring
along.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sys
import time
import tomllib
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import torch
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from torch.nn.functional import cross_entropy

from fairwave.data.sources import load
from fairwave.federate.fleet_link import HEARTBEAT_S, FleetLink
from fairwave.federate.link_errors import LinkError

VERSION, LONGEST = 4, 1e6
BATCH, LEARNING_RATE, GRADIENT_WEIGHT, ITERATIONS = 128, 0.01, 0.01, 80
Arrays = dict[str, torch.Tensor]


class TorchDevice:
    """A network of dense layers, trained on the samples that the device holds."""

    def __init__(self, sizes: list[int], inputs: torch.Tensor, labels: torch.Tensor) -> None:
        self.inputs, self.labels = inputs, labels
        self.layout = {
            f"{layer}.{name}": shape
            for layer, (before, after) in enumerate(pairwise(sizes))
            for name, shape in (("bias", (after,)), ("weight", (before, after)))
        }
        """Names and shapes in the order in which their values follow each other on the wire."""

    def loss(self, params: Arrays, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Mean cross entropy; weights are inputs by outputs."""
        layers = len(params) // 2
        for layer in range(layers):
            inputs = inputs @ params[f"{layer}.weight"] + params[f"{layer}.bias"]
            inputs = torch.relu(inputs) if layer < layers - 1 else inputs
        return cross_entropy(inputs, labels)

    def gradient_at(self, params: Arrays, inputs: torch.Tensor, labels: torch.Tensor) -> Arrays:
        """The gradient of the mean loss."""
        leaves = {name: value.detach().requires_grad_() for name, value in params.items()}
        slopes = torch.autograd.grad(self.loss(leaves, inputs, labels), list(leaves.values()))
        return dict(zip(leaves, slopes, strict=True))

    def gradient(self, copy: np.ndarray) -> np.ndarray:
        """The gradient over all samples, at a copy of the model."""
        return self.flat(self.gradient_at(self.named(copy), self.inputs, self.labels))

    def update(self, copy: np.ndarray, own: np.ndarray | None, mean: np.ndarray | None) -> np.ndarray:
        """How training moves the copy, with the correction that exchanged gradients make."""
        start, params = self.named(copy), self.named(copy)
        pull = {name: torch.tensor(0.0) for name in params}
        if own is not None and mean is not None:
            gradient, average = self.named(own), self.named(mean)
            pull = {name: gradient[name] - GRADIENT_WEIGHT * average[name] for name in params}
        for _ in range(ITERATIONS):
            picks = torch.randint(len(self.labels), (BATCH,))
            slopes = self.gradient_at(params, self.inputs[picks], self.labels[picks])
            params = {name: params[name] - LEARNING_RATE * (slopes[name] - pull[name]) for name in params}
        return self.flat({name: params[name] - start[name] for name in params})

    def named(self, flat: np.ndarray) -> Arrays:
        """Arrays of the model from all its values in a row."""
        parts = torch.from_numpy(flat.copy()).split([prod(shape) for shape in self.layout.values()])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.layout.items(), parts, strict=True)}

    def flat(self, arrays: Arrays) -> np.ndarray:
        """All values of the model in a row."""
        return torch.cat([arrays[name].ravel() for name in self.layout]).numpy()


class Refusal(Exception):
    """What the client does not do, by the word that it says about it."""


KNOWN = {"update_bits": 32, "features": "none", "activation": "relu", "optimizer": "sgd", "rate_decay": 1.0}
"""Parameters of learning of which the client knows one value."""


class Client:
    """Answers questions; whatever it sends is written down first, so that the same question gets the same bits."""

    def __init__(self, folder: Path) -> None:
        about = tomllib.loads((folder / "device.toml").read_text())
        agreement = folder / about.get("agreement", "agreement")
        scenario = tomllib.loads((agreement / "scenario.toml").read_text())
        self._digests = json.loads((agreement / "digests.json").read_text())
        self._exchanges = scenario["learning"].get("gradient_exchange", True)
        for name, known in KNOWN.items():
            if scenario["learning"].get(name, known) != known:
                raise SystemExit(f"learning.{name}: this example knows {known} alone; set it to that")
        data, count = load(about.get("data", "mnist")), scenario["data"]["samples_per_device"]
        inputs = torch.from_numpy(data.train_inputs[:count]).float().flatten(1) / 255.0
        labels = torch.from_numpy(data.train_labels[:count]).long()
        self._device, self._learner = about["device"], TorchDevice(scenario["learning"]["layer_sizes"], inputs, labels)
        self._key = serialization.load_ssh_private_key((folder / about.get("key", "node.key")).read_bytes(), None)
        self._state_file = folder / about.get("home", "home") / "torch.json"
        self._arrays_file = self._state_file.with_suffix(".npz")
        self._state_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def reply(self, kind: str, content: RecordDict) -> RecordDict:
        """The content of the reply to a message."""
        if kind == "query.hello":
            return self._hello(content)
        try:
            return self._answer(content)
        except Refusal as refusal:
            return self._records(0, "failed", None, reason=str(refusal))
        except Exception as error:  # its text may quote records: it stays here
            print(f"failed: {error!r}", file=sys.stderr)
            return self._records(0, "failed", None, reason="internal")

    def _hello(self, content: RecordDict) -> RecordDict:
        asked = b"fairwave device %d: " % self._device + content["fairwave.hello"]["question"]
        signature = self._key.sign(asked, ec.ECDSA(hashes.SHA384()))
        who = {"version": VERSION, "partition-id": self._device, "signature": signature}
        return RecordDict({"fairwave.hello": ConfigRecord(who)})

    def _answer(self, content: RecordDict) -> RecordDict:
        task = content.get("fairwave.task")
        if task is None or task.get("version") != VERSION:
            raise Refusal("unreadable")
        track = f"{task['scheme']} {task['seed']}"
        known = len(task["federation"]) == 16 and all(sign in "0123456789abcdef" for sign in task["federation"])
        if not known or self._digests.get(track) != task["agreement"].hex():
            raise Refusal("other_agreement")
        copy, mean = self._sound(content, "copy"), self._sound(content, "mean-gradient")
        if not 0.0 <= task["deviation"] <= 1.0:
            raise Refusal("refused_copy")
        state, arrays = self._read(f"{task['federation']} {track}")
        first = task["phase"] == "gradient" or not self._exchanges
        if (
            (copy is not None) != first
            or task["round"] < state["round"]
            or (not first and task["round"] != state["round"])
        ):
            return self._records(task["round"], "stale", None)
        if copy is not None and task["round"] > state["round"]:
            state, arrays = {**state, "round": task["round"], "question": ""}, {"copy": copy}
        elif copy is not None and copy.tobytes() != arrays["copy"].tobytes():
            return self._records(task["round"], "stale", None)
        if task["phase"] == "gradient":
            if "gradient" not in arrays:
                arrays["gradient"] = self._learner.gradient(arrays["copy"])
                self._write(state, arrays)
            return self._records(task["round"], "sent", arrays["gradient"], state)
        question = hashlib.sha256(b"" if mean is None else mean.tobytes()).hexdigest()
        if question != state["question"]:
            arrays["update"] = self._learner.update(arrays["copy"], arrays.get("gradient"), mean)
            state = {**state, "question": question}
            self._write(state, arrays)
        return self._records(task["round"], "sent", arrays["update"], state)

    def _sound(self, content: RecordDict, name: str) -> np.ndarray | None:
        """An array of the agreed form that an honest access point can have sent; None if there is none."""
        if name not in content:
            return None
        flat = content[name]["flat"].numpy()
        size = sum(prod(shape) for shape in self._learner.layout.values())
        if flat.shape != (size,) or flat.dtype != np.float32 or not np.linalg.norm(flat.astype(np.float64)) <= LONGEST:
            raise Refusal("refused_copy")
        return flat

    def _records(self, number: int, status: str, flat: np.ndarray | None, state: dict | None = None, **more: str):
        values = {
            **{"version": VERSION, "round": number, "status": status, "num-examples": len(self._learner.labels)},
            **{"spent": 0, "gradients": 0, "update-asks": 0, "gradient-asks": 0, "exhausted": 0},
            "state-name": (state or {}).get("name", 0),
            **{"reported-noise-std": 0.0, "reported-loss": float("nan"), "reason": more.get("reason", "none")},
        }
        records = RecordDict({"fairwave.answer": ConfigRecord(values)})
        if flat is not None:
            records["arrays"] = ArrayRecord({"flat": Array(flat)})
        return records

    def _read(self, which: str) -> tuple[dict, dict[str, np.ndarray]]:
        """The state of a federation, and the arrays of its last round; another federation begins anew."""
        if self._state_file.exists():
            state = json.loads(self._state_file.read_text())
            if state["which"] == which:
                with np.load(self._arrays_file, allow_pickle=False) as held:
                    return state, dict(held)
        return {"which": which, "round": -1, "question": "", "name": 1 + secrets.randbits(62)}, {}

    def _write(self, state: dict, arrays: dict[str, np.ndarray]) -> None:
        with self._arrays_file.with_suffix(".new").open("wb") as handle:
            np.savez(handle, **arrays)
        self._arrays_file.with_suffix(".new").replace(self._arrays_file)
        unfinished = self._state_file.with_suffix(".new.json")
        unfinished.write_text(json.dumps(state))
        unfinished.replace(self._state_file)


def main() -> None:
    """Stay connected, and answer."""
    folder = Path(sys.argv[1])
    about, client, node = tomllib.loads((folder / "device.toml").read_text()), Client(folder), None
    while True:
        link = FleetLink(about["access_point"], folder / "ca.crt", folder / "node.key")
        try:
            node, beaten = link.connect(node), time.monotonic()
            print(f"connected to {about['access_point']}", flush=True)
            while True:
                if time.monotonic() > beaten + 0.8 * HEARTBEAT_S:
                    link.heartbeat()
                    beaten = time.monotonic()
                message = link.receive()
                if message is None:
                    time.sleep(0.5)
                else:
                    link.reply(message, client.reply(message.metadata.message_type, message.content), 0.0)
        except LinkError as error:
            print(f"{error}; trying again in 5 s", flush=True)
            link.close(goodbye=False)
            time.sleep(5.0)
        except KeyboardInterrupt:
            link.close(goodbye=True)
            return


if __name__ == "__main__":
    main()
