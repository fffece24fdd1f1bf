"""NumPy's files of arrays (.npz, .npy), of which nothing is believed and nothing is unpickled."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Arrays", "array_of"]

Array = npt.NDArray[Any]
T = TypeVar("T")

_MOST: Final = 1040
"""How many times as large what deflate packs may be."""
_DAMAGED: Final = (
    ValueError, KeyError, EOFError, OverflowError, RuntimeError, NotImplementedError, struct.error,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""What zipfile raises where an archive is damaged."""
_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0,
}  # fmt: skip


class Arrays(Mapping[str, Array]):
    """The arrays of an .npz file by name, each read when it is asked for.

    None can ask for more memory than its bytes in the file account for.

    Args:
        path: the file.
        packed: whether its parts may be packed.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no archive, or its parts claim more than it has; so may each look-up.
    """

    def __init__(self, path: str | os.PathLike[str], packed: bool = True) -> None:
        self._packed = packed
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(open(path, "rb"))
            self._archive = stack.enter_context(_tried(lambda: zipfile.ZipFile(file)))
            infos = self._archive.infolist()
            if sum(i.compress_size for i in infos) > os.fstat(file.fileno()).st_size:
                raise ValueError("its parts are larger than the file")
            self._infos = {i.filename.removesuffix(".npy"): i for i in infos}
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def __iter__(self) -> Iterator[str]:
        return iter(self._infos)

    def __len__(self) -> int:
        return len(self._infos)

    def __getitem__(self, name: str) -> Array:
        info = self._infos[name]
        stored = info.compress_type == zipfile.ZIP_STORED
        if not (stored or (self._packed and info.compress_type == zipfile.ZIP_DEFLATED)):
            raise ValueError(f"{info.filename} is compressed (method {info.compress_type})")
        if info.file_size > info.compress_size * (1 if stored else _MOST):
            raise ValueError(f"{info.filename} claims to be larger than it can be")
        try:
            return array_of(_tried(lambda: self._archive.read(info)))
        except ValueError as e:
            raise ValueError(f"{info.filename}: {e}") from e


def _tried(read: Callable[[], T]) -> T:
    try:
        return read()
    except _DAMAGED as e:
        raise ValueError(f"{type(e).__name__}: {e}") from e
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
        raise ValueError("a part lies outside of the file") from e


def array_of(data: bytes) -> Array:
    """The array of an .npy file, which shares the memory of its bytes.

    Raises:
        ValueError: it is none, it holds Python objects, or its size is not that of its bytes.
    """
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format")
        shape, fortran, dtype = _HEADERS[version](file)
    except (SyntaxError, TypeError, KeyError, RecursionError, tokenize.TokenError) as e:
        # The head is a literal of Python's.
        raise ValueError(f"the head of an array is damaged: {e}") from e
    if dtype.hasobject:
        raise ValueError("an array holds Python objects, whose pickles could run anything")
    have = len(data) - file.tell()
    if min(shape, default=0) < 0 or dtype.itemsize * int(np.prod(shape, dtype=object)) != have:
        raise ValueError(f"an array of type {dtype} and shape {shape} has {have} bytes")
    flat = np.frombuffer(data, dtype, offset=file.tell()) if have else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")
