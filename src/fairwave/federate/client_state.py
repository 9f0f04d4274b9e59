"""What one client remembers between messages, in a file of its own that survives crashes and restarts.

The access point never sees it: effort estimates, energy and secrets stay on the device. It also holds the client's last
answer. Asked the same thing again, after the access point was interrupted, the client sends the same bits, which is no
second release.

A file is a line with its format, a digest of that line and all that follows, and packed arrays. Format 1 had no such
line and counted no questions; it is read, as a state that the access point has not heard of before.
"""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from pathlib import Path

import jax
import numpy as np

from fairwave.errors import FederationError
from fairwave.learning.model import Tree
from fairwave.learning.named_arrays import NamedArrays, named_arrays, tree_of
from fairwave.policy.effort import finite_log
from fairwave.policy.effort_fit import EffortMemory
from fairwave.private_files import replace_file
from fairwave.runs.packing import pack, unpack

FORMAT = 2
_FIRST_LINE = b"fairwave client state "
_COUNTS = ("name", "spent", "gradients", "ask", "update_asks", "gradient_asks")
_NUMBERS = ("round", "steps_left", "secret")
_QUANTITIES = ("used_energy_j", "round_energy_j", "compute_energy_j")
_GROUPS = ("gradient", "update", "copy")


@dataclasses.dataclass
class ClientState:
    """The state of one device in one federation, for one scheme and seed."""

    effort: EffortMemory
    """Its estimate of how its deviation answers to its effort."""
    name: int = dataclasses.field(default_factory=lambda: 1 + secrets.randbits(62))
    """A number by which the access point recognises this state, and never takes a new one for one that was lost."""
    round: int = -1
    """The last round that it took part in."""
    spent: int = 0
    """Local steps whose results have left the device, where a proof counts them."""
    gradients: int = 0
    """Gradients that have left the device, where a proof counts them."""
    ask: int = 0
    """The number of the question that was answered last."""
    update_asks: int = 0
    """Questions for an update that were answered, where a proof counts them."""
    gradient_asks: int = 0
    """Questions for a gradient that were answered, where a proof counts them."""
    steps_left: int = -1
    """Local steps that the access point's ledger and the device's own account left at the beginning of `round`; -1 for
    no limit."""
    secret: int = dataclasses.field(default_factory=lambda: secrets.randbits(63))
    """Root of its own noise and batches, where these are not the scenario's."""
    used_energy_j: float = 0.0
    """Energy taken from its battery so far."""
    round_energy_j: float = 0.0
    """The part of it that belongs to `round`."""
    compute_energy_j: float = 0.0
    """Compute energy of `round`, to be compared with the deviation that it will receive."""
    copy: NamedArrays | None = None
    """The copy of the model that it received for `round`."""
    gradient: NamedArrays | None = None
    """The gradient that it sent in `round`."""
    update: NamedArrays | None = None
    """The update that it sent in `round`, for the question with this digest."""
    question: bytes = b""
    personal_model: Tree | None = None
    """Its own model, where the scheme has them."""
    reported: dict[str, float] = dataclasses.field(default_factory=dict)
    """What else it knows of its last training, some of which it reported."""


DIGEST = 16
"""Bytes of the digest."""


class ClientStateFile:
    """The file that holds a client's state."""

    def __init__(self, path: Path, first: EffortMemory, personal: Tree | None) -> None:
        self._path, self._first, self._personal = path, first, personal

    @property
    def folder(self) -> Path:
        """The private folder that it is in."""
        return self._path.parent

    def read(self) -> ClientState:
        """The state as it was last written, or a new one."""
        if not self._path.exists():
            return ClientState(effort=self._first, personal_model=self._personal)
        held = self._checked(self._path.read_bytes())
        state = ClientState(effort=tree_of(_in_logarithms(_group(held, "effort")), self._first))
        for name in (*_NUMBERS, *(_COUNTS if _COUNTS[-1] in held else ())):
            setattr(state, name, int(held[name]))
        for name in _QUANTITIES:
            setattr(state, name, float(held[name]))
        for name in _GROUPS:
            setattr(state, name, _group(held, name) or None)
        state.question = held["question"].tobytes()
        state.reported = {name: float(value) for name, value in _group(held, "reported").items()}
        if self._personal is not None:
            state.personal_model = tree_of(_group(held, "personal"), self._personal)
        return state

    def _checked(self, content: bytes) -> dict[str, np.ndarray]:
        """The arrays of a file whose format is known and whose digest is right."""
        first, rest = b"", content
        if content.startswith(_FIRST_LINE):
            first, rest = content[: (end := content.find(b"\n") + 1)], content[end:]
        written = first.removeprefix(_FIRST_LINE).strip().decode(errors="replace") if first else "1"
        if written.isdecimal() and int(written) > FORMAT:
            raise FederationError(
                f"{self._path}: format {written}, this version reads 1 to {FORMAT}; use the fairwave that wrote it"
            )
        digest, packed = rest[:DIGEST], rest[DIGEST:]
        if digest != _digest(first + packed):
            raise FederationError(
                f"{self._path}: damaged, and with it what this device has spent of its privacy budget; restore a "
                "copy that was made after its last round, or leave this federation"
            )
        return unpack(packed)

    def write(self, state: ClientState) -> None:
        """Replace the file whole; once this returns, a power cut does not undo it."""
        held = {name: np.asarray(getattr(state, name)) for name in (*_COUNTS, *_NUMBERS, *_QUANTITIES)}
        held["question"] = np.frombuffer(state.question, np.uint8)
        groups = {name: getattr(state, name) or {} for name in _GROUPS}
        groups["effort"] = named_arrays(state.effort)
        groups["reported"] = {name: np.asarray(value) for name, value in state.reported.items()}
        if state.personal_model is not None:
            groups["personal"] = named_arrays(state.personal_model)
        held |= {f"{group}/{name}": array for group, arrays in groups.items() for name, array in arrays.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        first, packed = _FIRST_LINE + str(FORMAT).encode() + b"\n", pack(held)
        replace_file(self._path, first + _digest(first + packed) + packed)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST).digest()


def _group(held: dict[str, np.ndarray], group: str) -> NamedArrays:
    return {name.removeprefix(f"{group}/"): held[name] for name in held if name.startswith(f"{group}/")}


def _in_logarithms(effort: NamedArrays) -> NamedArrays:
    """An effort memory as it is now, from a file that may hold the model's scale instead of its logarithm."""
    return {
        name.replace(".scale", ".log_scale"): np.asarray(finite_log(jax.numpy.asarray(array)))
        if name.endswith(".scale")
        else array
        for name, array in effort.items()
    }


def on_host(tree: Tree) -> Tree:
    """A tree as NumPy arrays, so that it does not depend on a device of JAX."""
    return jax.tree.map(np.asarray, tree)
