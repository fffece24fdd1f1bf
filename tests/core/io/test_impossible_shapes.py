"""Shapes that no array has: NumPy counts what stands beside a 0, and takes so many dimensions."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock.io import protos
from opdock.io.safetensors_files import safetensors_to_checkpoint
from opdock.io.tensor_slice import FULL, TensorSlice, gather
from opdock.onnx.library import array_of, library
from opdock.values import MOST_AXES, holds

LARGE, LONG = [0, 2**32 - 1, 2**32 - 1], [1] * (MOST_AXES + 1)


def test_what_arrays_have() -> None:
    assert holds([3, 0, 4]) and holds([]) and holds([1] * MOST_AXES)
    assert not holds(LARGE) and not holds(LONG)


@pytest.mark.parametrize("shape", [LARGE, LONG])
def test_in_a_tensor_proto(shape: list[int]) -> None:
    proto = protos.TensorProto(dtype=tf.float32.as_datatype_enum)
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    with pytest.raises(ValueError, match="too many dimensions or elements"):
        tf.make_ndarray(proto)


@pytest.mark.parametrize("shape", [LARGE, LONG])
def test_in_an_onnx_model(shape: list[int]) -> None:
    tensor = library().TensorProto(name="w", data_type=1, dims=shape, raw_data=b"")
    words = "'w' of shape .* too many dimensions or elements"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        array_of(tensor)


@pytest.mark.parametrize(
    ("shape", "end", "words"),
    [(LARGE, 0, "array is too big"), (LONG, 4, "maximum supported dimension")],
)
def test_in_safetensors(tmp_path: Path, shape: list[int], end: int, words: str) -> None:
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}
    head = json.dumps({"w": entry}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"0" * end)
    with pytest.raises(tf.errors.DataLossError, match=f"w.safetensors: tensor w: {words}"):
        safetensors_to_checkpoint(path, tmp_path / "c")


def test_in_slices_of_a_checkpoint() -> None:
    shape = [2, 2**30, 2**20]
    halves = [TensorSlice(((at, 1), (0, FULL), (0, FULL))) for at in (0, 1)]
    pieces = ((half, lambda: np.zeros(1, np.float32)) for half in halves)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM when allocating .* slices"):
        gather(TensorSlice.full(3), shape, np.dtype(np.float32), pieces)
