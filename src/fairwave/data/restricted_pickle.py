"""Pickles of arrays, read without running what they ask for.

A pickle is a program that may call anything by name. Here a name is looked up in a short list and nowhere else, so that
a pickle can build plain containers, arrays and what the list has, and is refused as soon as it asks for more.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairwave.errors import ScenarioError


def load_pickle(content: bytes, name: str, more: Mapping[tuple[str, str], Any] | None = None) -> Any:
    """The content of a pickle that needs nothing but containers, numeric arrays, and the names in `more`."""
    try:
        _refuse_large_numbers(content)
        return _Restricted(content, _ARRAYS | dict(more or {})).load()
    except ScenarioError:
        raise
    except Exception as error:  # a damaged or hostile pickle can fail in any way that the interpreter knows
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ScenarioError(f"{name}: not a pickle of arrays ({reason}); download it again") from None


def _refuse_large_numbers(content: bytes) -> None:
    """Refuse a pickle that numbers its parts beyond their count: the reader would reserve memory for all of them."""
    for opcode, number, _ in pickletools.genops(content):
        if "PUT" in opcode.name and int(number or 0) > len(content):
            raise ValueError(f"it numbers a part {number}")


class _Restricted(pickle.Unpickler):
    def __init__(self, content: bytes, allowed: Mapping[tuple[str, str], Any]) -> None:
        super().__init__(io.BytesIO(content), fix_imports=False, encoding="bytes")
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._allowed:
            raise ValueError(f"it asks for {module}.{name}")
        return self._allowed[module, name]

    def persistent_load(self, _: Any) -> Any:
        raise ValueError("it refers to something outside")


def _reconstruct(_: Any, shape: Any, __: Any) -> _Array:
    """Begin an array as NumPy's pickles do; the state that follows has all of it."""
    if shape != (0,):
        raise ValueError("an array that begins with a shape")
    return _Array()


class _Array:
    """An array whose state is still to come. NumPy's own would take object arrays, and pointers in them."""

    values: np.ndarray

    def __setstate__(self, state: tuple[int, tuple[int, ...], _Type, bool, Any]) -> None:
        _, shape, kind, by_columns, content = state
        if kind.code == "O":
            self.values = np.array([str(each) for each in content]).reshape(shape)
            return
        values = np.frombuffer(content, np.dtype(kind.order + kind.code))
        self.values = values.reshape(shape, order="F" if by_columns else "C")


class _Type:
    """A number's type: its code such as 'f8', and its byte order."""

    def __init__(self, code: str | bytes, *_: Any) -> None:
        text = code.decode("ascii") if isinstance(code, bytes) else code
        self.code, self.order = text[:1] if text.startswith("O") else text, "<"
        if self.code not in ("O", "u1", "i4", "i8", "f4", "f8"):
            raise ValueError(f"an array of type '{text}'")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
        self.order = order if order in ("<", ">") else "<"


def _encode(text: str, encoding: str) -> bytes:
    """Bytes as Python 3 writes them into pickles that Python 2 can read; other encodings have no place here."""
    if encoding != "latin1":
        raise ValueError(f"text in encoding '{encoding}'")
    return text.encode("latin1")


_ARRAYS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): object,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}


def array_of(value: Any) -> np.ndarray:
    """The array that a pickle held in some place."""
    if not isinstance(value, _Array):
        raise ValueError(f"{type(value).__name__} where an array should be")
    return value.values
