"""The table of element types, and the ways in which users spell them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import opdock as tf
from opdock import dtypes

# name, TensorFlow's enum number, NumPy type
TABLE = [
    ("float32", 1, np.float32), ("float64", 2, np.float64), ("int32", 3, np.int32),
    ("uint8", 4, np.uint8), ("int16", 5, np.int16), ("int8", 6, np.int8), ("string", 7, np.object_),
    ("complex64", 8, np.complex64), ("int64", 9, np.int64), ("bool", 10, np.bool_),
    ("bfloat16", 14, ml_dtypes.bfloat16), ("uint16", 17, np.uint16),
    ("complex128", 18, np.complex128), ("float16", 19, np.float16), ("uint32", 22, np.uint32),
    ("uint64", 23, np.uint64),
]  # fmt: skip
NAMES = [row[0] for row in TABLE]


@pytest.mark.parametrize(("name", "enum", "numpy_type"), TABLE, ids=NAMES)
def test_the_table(name, enum, numpy_type):
    dtype = getattr(tf, name)
    assert dtype.name == name
    assert dtype.as_datatype_enum == enum
    assert dtype.as_numpy_dtype is numpy_type
    assert repr(dtype) == f"tf.{name}"
    assert str(dtype) == f"<dtype: '{name}'>"


@pytest.mark.parametrize(("name", "enum", "numpy_type"), TABLE, ids=NAMES)
def test_every_spelling_gives_the_one_object(name, enum, numpy_type):
    dtype = getattr(tf, name)
    spellings = [name, enum, dtype] if name == "string" else [name, enum, numpy_type, dtype]
    assert all(tf.as_dtype(s) is dtype for s in spellings)
    if name != "string":
        assert tf.as_dtype(np.dtype(numpy_type)) is dtype
    assert dtype == name
    assert hash(dtype) == hash(tf.as_dtype(enum))


@pytest.mark.parametrize(
    ("given", "want"),
    [("float", "float32"), ("half", "float16"), ("double", "float64"), (float, "float32"),
     (int, "int64"), (bool, "bool"), (np.dtype("S3"), "string"), (np.dtype("U3"), "string"),
     (object, "string"), (str, "string")],
)  # fmt: skip
def test_other_spellings(given, want):
    assert tf.as_dtype(given) is getattr(tf, want)


@pytest.mark.parametrize("wrong", ["float33", 1000, object(), "floats"])
def test_what_is_no_type(wrong):
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.as_dtype(wrong)


def test_reference_types():
    ref = tf.float32._as_ref
    assert ref.name == "float32_ref"
    assert ref.as_datatype_enum == 101
    assert ref.base_dtype is tf.float32
    assert ref != tf.float32
    # A reference may stand where a value is asked for, never the other way round.
    assert tf.float32.is_compatible_with(ref)
    assert not ref.is_compatible_with(tf.float32)
    assert not tf.float32.is_compatible_with(tf.int32)
    assert tf.as_dtype("float32_ref") is tf.as_dtype(101) is ref
    assert ref.is_floating
    assert ref.size == 4


def test_kinds():
    kind = {n: tf.as_dtype(n) for n in NAMES}
    assert [n for n in NAMES if kind[n].is_floating] == [
        "float32", "float64", "bfloat16", "float16",
    ]  # fmt: skip
    assert [n for n in NAMES if kind[n].is_complex] == ["complex64", "complex128"]
    assert [n for n in NAMES if kind[n].is_unsigned] == ["uint8", "uint16", "uint32", "uint64"]
    assert [n for n in NAMES if kind[n].is_bool] == ["bool"]
    assert [n for n in NAMES if kind[n].is_integer] == [
        "int32", "uint8", "int16", "int8", "int64", "uint16", "uint32", "uint64",
    ]  # fmt: skip
    assert tf.qint8.is_quantized
    assert not tf.qint8.is_integer
    assert kind["complex64"].real_dtype is tf.float32
    assert kind["complex128"].real_dtype is tf.float64
    assert kind["int8"].real_dtype is tf.int8


def test_limits():
    assert (tf.int8.min, tf.int8.max) == (-128, 127)
    assert tf.uint8.limits == (0, 255)
    assert tf.uint8.limits[1] == tf.uint8.max
    assert tf.float32.limits == (0, 1)
    assert tf.float16.max == np.finfo(np.float16).max
    assert tf.float32.min == np.finfo(np.float32).min
    assert float(tf.bfloat16.max) == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    for unlimited in (tf.string, tf.complex64, tf.bool, tf.qint8):
        with pytest.raises(TypeError, match="Cannot find maximum value"):
            unlimited.max


def test_the_sets():
    assert dtypes.FLOATS == {tf.float16, tf.bfloat16, tf.float32, tf.float64}
    assert dtypes.COMPLEX < dtypes.NUMBERS < dtypes.ALL
    assert tf.bool not in dtypes.NUMBERS


def test_a_type_copies_and_pickles_to_itself():
    import copy
    import pickle

    assert copy.deepcopy(tf.float32) is tf.float32
    assert pickle.loads(pickle.dumps(tf.int64._as_ref)) is tf.int64._as_ref


def test_a_type_by_its_number():
    assert dtypes.DType(1) is dtypes.float32 and dtypes.DType(103) is dtypes.int32._as_ref
    with pytest.raises(TypeError):
        dtypes.DType(99)
