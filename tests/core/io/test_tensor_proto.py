"""TensorProto: every type, both encodings, splats, and contents that lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock import dtypes
from opdock.io import protos
from opdock.io.tensor_proto import decode_array, encode_array, make_ndarray, make_tensor_proto

TYPES = sorted(dtypes.ALL - {dtypes.resource, dtypes.variant}, key=int)


def sample(dtype: dtypes.DType, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    if dtype == dtypes.string:
        out = np.empty(count, object)
        out[:] = [b"a\x00\xff" * i for i in range(count)]
        return out.reshape(shape)
    numbers = np.arange(count)
    if dtype.is_quantized:
        return numbers.astype(dtype.np[0]).view(dtype.np).reshape(shape)
    if dtype.is_complex:
        return (numbers + 1j * numbers[::-1]).astype(dtype.np).reshape(shape)
    return (
        (numbers - (0 if dtype.is_unsigned or dtype.is_bool else 2)).astype(dtype.np).reshape(shape)
    )


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (0, 4), (2, 0)], ids=str)
def test_there_and_back(dtype: dtypes.DType, shape: tuple[int, ...]) -> None:
    value = sample(dtype, shape)
    proto = protos.TensorProto.FromString(encode_array(value, dtype).SerializeToString())
    assert proto.dtype == dtype.as_datatype_enum
    back = make_ndarray(proto)
    assert back.dtype == dtype.np
    assert back.shape == shape
    assert back.tolist() == value.tolist()
    assert back.flags.writeable


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name)
def test_repeated_fields_hold_what_content_holds(dtype: dtypes.DType) -> None:
    value = sample(dtype, (4,))
    proto = make_tensor_proto(value, dtype=dtype, shape=[6])
    assert not proto.tensor_content
    expected = [*value.tolist(), value.tolist()[-1], value.tolist()[-1]]
    assert make_ndarray(proto).tolist() == expected


def test_one_element_goes_to_the_typed_field() -> None:
    assert list(make_tensor_proto(1.5).float_val) == [1.5]
    assert make_tensor_proto(1.5).HasField("tensor_shape")
    assert make_tensor_proto([1.5, 2.5]).tensor_content == np.float32([1.5, 2.5]).tobytes()


def test_a_repeated_element_stays_small() -> None:
    proto = make_tensor_proto(3.0, shape=[1000, 1000, 1000])
    array = decode_array(proto)
    assert array.shape == (1000, 1000, 1000)
    assert array.strides == (0, 0, 0)
    assert encode_array(array).SerializeToString() == proto.SerializeToString()


def test_defaults_are_zero_when_there_is_no_value() -> None:
    proto = protos.TensorProto(dtype=dtypes.int32.as_datatype_enum)
    proto.tensor_shape.dim.add(size=3)
    assert make_ndarray(proto).tolist() == [0, 0, 0]


def test_python_values_take_tfs_types() -> None:
    assert make_tensor_proto([1, 2]).dtype == dtypes.int32.as_datatype_enum
    assert make_tensor_proto(1.0).dtype == dtypes.float32.as_datatype_enum
    assert make_tensor_proto(2**40).dtype == dtypes.int64.as_datatype_enum
    assert make_tensor_proto(np.float64(1)).dtype == dtypes.float64.as_datatype_enum
    assert list(make_tensor_proto(["a", b"b"]).string_val) == [b"a", b"b"]
    assert make_tensor_proto(True).dtype == dtypes.bool.as_datatype_enum


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: make_tensor_proto([1, 2, 3], shape=[2]), ValueError),
        (lambda: make_tensor_proto([1, 2], shape=[2, 1], verify_shape=True), TypeError),
        (lambda: make_tensor_proto(1.5, dtype=dtypes.int32), TypeError),
        (lambda: make_tensor_proto("a", dtype=dtypes.float32), TypeError),
        (lambda: make_tensor_proto(None), ValueError),
        (lambda: make_tensor_proto([object()]), TypeError),
    ],
)
def test_bad_values(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def proto_of(dtype: dtypes.DType, *dims: int, **fields: Any) -> Any:
    proto = protos.TensorProto(dtype=dtype.as_datatype_enum, **fields)
    for d in dims:
        proto.tensor_shape.dim.add(size=d)
    return proto


@pytest.mark.parametrize(
    "proto",
    [
        proto_of(dtypes.float32, 3, tensor_content=b"\0" * 8),
        proto_of(dtypes.float32, 2**40, tensor_content=b"\0" * 8),
        proto_of(dtypes.string, 1, tensor_content=b"x"),
        proto_of(dtypes.float32, 2, float_val=[1, 2, 3]),
        proto_of(dtypes.float32, -1, float_val=[1]),
        proto_of(dtypes.float32, 2**45, float_val=[1, 2]),
    ],
    ids=["short", "huge", "string-content", "too-many", "negative", "huge-splat"],
)
def test_contents_that_do_not_fit(proto: Any) -> None:
    with pytest.raises(ValueError):
        make_ndarray(proto)


def test_types_without_values() -> None:
    with pytest.raises(TypeError, match="resource"):
        make_ndarray(proto_of(dtypes.resource))
    with pytest.raises(TypeError, match="99"):
        make_ndarray(protos.TensorProto(dtype=99))


@pytest.mark.parametrize(
    ("dtype", "field"),
    [
        (tf.float16, "half_val"), (tf.bfloat16, "half_val"), (tf.uint16, "int_val"),
        (tf.bool, "bool_val"), (tf.complex64, "scomplex_val"), (tf.complex128, "dcomplex_val"),
    ],
)  # fmt: skip
def test_types_that_are_never_raw_bytes(dtype, field) -> None:
    proto = tf.make_tensor_proto(np.array([1, 0]).astype(dtype.as_numpy_dtype))
    assert not proto.tensor_content
    assert len(getattr(proto, field)) == (4 if dtype.is_complex else 2)
    assert tf.make_ndarray(proto).tolist() == [1, 0]


def test_objects_that_convert() -> None:
    class Wrapper:
        def __array__(self, dtype=None, copy=None):
            return np.array([b"foo", b"bar"])

    assert list(tf.make_tensor_proto(Wrapper(), shape=[1, 2]).string_val) == [b"foo", b"bar"]
    mixed = tf.make_tensor_proto([10, tf.Dimension(20)], tf.int32)
    assert tf.make_ndarray(mixed).tolist() == [10, 20]
    with pytest.raises(TypeError, match="Failed to convert object"):
        tf.make_tensor_proto([object()])
    with pytest.raises(TypeError, match="Expected qint8, got 3 of type 'int' instead"):
        tf.make_tensor_proto([3], tf.qint8)


def test_one_value_may_be_repeated() -> None:
    one = tf.make_tensor_proto([7], shape=[2, 2], allow_broadcast=True)
    assert tf.make_ndarray(one).tolist() == [[7, 7], [7, 7]]
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.make_tensor_proto([7, 8], shape=[2, 2], allow_broadcast=True)
    with pytest.raises(ValueError, match="not both allowed"):
        tf.make_tensor_proto(7, shape=[1], verify_shape=True, allow_broadcast=True)
