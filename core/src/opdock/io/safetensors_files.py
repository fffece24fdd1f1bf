"""Checkpoints as `.safetensors` files and back, through the library of that name.

The library is an extra (`opdock-core[safetensors]`), imported when a file is first written or read.
"""

from __future__ import annotations

import importlib
from typing import Any

from opdock import errors
from opdock.io.checkpoint_reader import open_checkpoint
from opdock.io.checkpoint_v2 import BundleWriter
from opdock.io.files import Temporary, local_copy, local_path, tf_errors

__all__ = ["checkpoint_to_safetensors", "safetensors_to_checkpoint"]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise errors.UnimplementedError(
            None, None, f"A .safetensors file needs the library safetensors: {e}"
        ) from None


def checkpoint_to_safetensors(prefix: Any, path: Any) -> list[str]:
    """Writes the tensors of a checkpoint to a file, whole or not at all.

    The library takes all tensors at once, so they are all in memory meanwhile.

    Args:
        prefix: the checkpoint's prefix, of either format.
        path: the file.

    Returns:
        The names of the tensors.

    Raises:
        NotFoundError: there is no such checkpoint.
        DataLossError: it is damaged.
        UnimplementedError: a tensor has a type that the format does not know, such as strings, or
            the library is not installed.
    """
    library = _library("safetensors.numpy")
    with open_checkpoint(prefix) as reader:
        tensors = {}
        for name in reader.names():
            dtype = reader.dtype(name)
            value = reader.get(name)
            if value.dtype == object or dtype.is_quantized:
                raise _unknown(name, dtype.name)
            tensors[name] = value
    target = Temporary(local_path(path))
    try:
        try:
            library.save_file(tensors, target.name)
        except (KeyError, ValueError) as e:
            # It says which type, and not which tensor.
            kinds = ", ".join(sorted({str(t.dtype) for t in tensors.values()}))
            raise _unknown(f"one of {len(tensors)} tensors", f"{kinds} ({e})") from None
        with tf_errors(target.path):
            target.install()
    except BaseException:
        target.discard()
        raise
    return sorted(tensors)


def _unknown(name: str, kind: str) -> errors.UnimplementedError:
    return errors.UnimplementedError(
        None, None, f"Tensor {name} has type {kind}, which .safetensors files do not have"
    )


def safetensors_to_checkpoint(path: Any, prefix: Any) -> list[str]:
    """Writes the tensors of a file as a V2 checkpoint, one after the other.

    Args:
        path: the file.
        prefix: the checkpoint's prefix.

    Returns:
        The names of the tensors.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: it is no such file, or damaged.
        UnimplementedError: the library is not installed.
    """
    library = _library("safetensors")
    source = local_path(path)
    try:
        with (
            local_copy(source) as name, tf_errors(source),
            library.safe_open(name, framework="numpy") as file,
        ):  # fmt: skip
            names = sorted(file.keys())
            with BundleWriter(local_path(prefix)) as writer:
                for name in names:
                    try:
                        value = file.get_tensor(name)
                    except ValueError as e:  # NumPy's word on a shape that no array has
                        told = f"{source}: tensor {name}: {e}"
                        raise errors.DataLossError(None, None, told) from None
                    writer.add(name, value)
    except library.SafetensorError as e:
        raise errors.DataLossError(None, None, f"{source}: {e}") from None
    return names
