"""Shapes that no array has, though they hold nothing: NumPy counts what stands beside a 0."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import opdock as tf
from opdock.io import protos
from opdock.io.safetensors_files import safetensors_to_checkpoint
from opdock.onnx.library import array_of, library
from opdock.values import MOST, counted

SHAPE = [0, 2**32 - 1, 2**32 - 1]


def test_what_is_counted() -> None:
    assert counted([3, 0, 4]) == 12 and counted([]) == 1
    assert counted(SHAPE) >= MOST


def test_in_a_tensor_proto() -> None:
    proto = protos.TensorProto(dtype=tf.float32.as_datatype_enum)
    for size in SHAPE:
        proto.tensor_shape.dim.add(size=size)
    with pytest.raises(ValueError, match="too many dimensions or elements"):
        tf.make_ndarray(proto)


def test_in_an_onnx_model() -> None:
    tensor = library().TensorProto(name="w", data_type=1, dims=SHAPE, raw_data=b"")
    with pytest.raises(tf.errors.InvalidArgumentError, match="'w' of shape .* too many elements"):
        array_of(tensor)


def test_in_safetensors(tmp_path: Path) -> None:
    head = json.dumps({"w": {"dtype": "F32", "shape": SHAPE, "data_offsets": [0, 0]}}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head)
    with pytest.raises(tf.errors.DataLossError, match="w.safetensors: tensor w: array is too big"):
        safetensors_to_checkpoint(path, tmp_path / "c")
