"""Files in the very formats in which data sets are published, small and made here."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

CLOTHES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(array: np.ndarray) -> bytes:
    return struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def clothes() -> tuple[dict[str, bytes], dict[str, np.ndarray]]:
    """Four gzipped idx files, and the arrays in them."""
    draw = np.random.default_rng(0)
    arrays = [draw.integers(0, 256, shape, np.uint8) for shape in ((30, 28, 28), (30,), (12, 28, 28), (12,))]
    arrays[1], arrays[3] = arrays[1] % 10, arrays[3] % 10
    files = {f"{name}.gz": gzip.compress(idx(array)) for name, array in zip(CLOTHES, arrays, strict=True)}
    parts = ("train_images", "train_labels", "test_images", "test_labels")
    return files, dict(zip(parts, arrays, strict=True))


def tar(members: Mapping[str, bytes | None], packing: str = "gz") -> bytes:
    """A tar archive; a member without content is a link to a file outside."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{packing}") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if content is None:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
            else:
                member.size = len(content)
            archive.addfile(member, None if content is None else io.BytesIO(content))
    return buffer.getvalue()


def deb(members: Mapping[str, bytes | None], packing: str = "xz") -> bytes:
    """A Debian package: an ar archive of a version, control files and files."""
    if packing == "zst":
        import pyarrow

        sink = pyarrow.BufferOutputStream()
        with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(tar(members, ""))
        files = sink.getvalue().to_pybytes()
    else:
        files = tar(members, packing)
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": tar({"control": b"x"}, "xz"), f"data.tar.{packing}": files}
    content = b"!<arch>\n"
    for name, part in parts.items():
        content += (
            f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(part):<10}`\n".encode() + part + b"\n" * (len(part) % 2)
        )
    return content


class Named:
    """A name that a pickle asks for, whether it exists here or not."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *_: Any) -> None:
        raise AssertionError("only written, never called")


class Made:
    """What a pickle makes by calling a name, and the state that it then gives it."""

    def __init__(self, maker: Named, arguments: tuple[Any, ...], state: Any = None) -> None:
        self.reduced = (maker, arguments) if state is None else (maker, arguments, state)

    def __reduce__(self) -> Any:
        return self.reduced


class _Writer(pickle._Pickler):
    dispatch: ClassVar[dict[Any, Any]] = dict(pickle._Pickler.dispatch)

    def named(self, value: Named) -> None:
        self.write(b"c" + f"{value.module}\n{value.name}\n".encode())

    dispatch[Named] = named


class _OldWriter(_Writer):
    """Bytes as Python 2 wrote its strings."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_Writer.dispatch)

    def string(self, value: bytes) -> None:
        self.write(b"T" + struct.pack("<i", len(value)) + value)

    dispatch[bytes] = string


def pickled(value: Any, *, by_python_2: bool = False) -> bytes:
    buffer = io.BytesIO()
    (_OldWriter if by_python_2 else _Writer)(buffer, 2).dump(value)
    return buffer.getvalue()


def array(values: np.ndarray, *, by_columns: bool = False) -> Made:
    """An array as NumPy 1 pickled it."""
    order = "<" if values.dtype.itemsize > 1 else "|"
    text = values.dtype.kind == "U"
    code = "O8" if text else values.dtype.str[1:]
    kind = Made(Named("numpy", "dtype"), (code, 0, 1), (3, "|" if text else order, None, None, None, -1, -1, 0))
    content = values.tolist() if text else values.tobytes("F" if by_columns else "C")
    start = (Named("numpy", "ndarray"), (0,), b"b")
    return Made(Named("numpy.core.multiarray", "_reconstruct"), start, (1, values.shape, kind, by_columns, content))


def table(channels: np.ndarray, labels: np.ndarray) -> Made:
    """A table of sensor values as pandas 1.0 pickled it."""
    names = np.array(["acc-x", "acc-y", "acc-z", "gyro-x", "gyro-y", "gyro-z", "sequence", "label"])
    made, new_index = Named("copy_reg", "_reconstructor"), Named("pandas.core.indexes.base", "_new_Index")
    plain, index = Named("__builtin__", "object"), Named("pandas.core.indexes.base", "Index")
    columns = Made(new_index, (index, {"data": array(names), "name": None}))
    rows = Made(new_index, (Named("pandas.core.indexes.range", "RangeIndex"), {"name": None, "start": 0, "step": 1}))
    whole = np.stack([np.arange(labels.size), labels])
    blocks = [array(channels.T.copy()), array(whole, by_columns=True)]
    where = {"mgr_locs": Made(Named("__builtin__", "slice"), (0, 6, 1)), "values": blocks[0]}
    state = ([columns, rows], blocks, [columns, columns], {"0.14.1": {"blocks": [where]}})
    manager = Made(made, (Named("pandas.core.internals.managers", "BlockManager"), plain, None), state)
    return Made(made, (Named("pandas.core.frame", "DataFrame"), plain, None), {"_data": manager, "_typ": "dataframe"})


class Hostile:
    """A pickle that makes a file when it is read plainly."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return open, (str(self.marker), "w")
