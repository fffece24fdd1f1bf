"""Columns of text are read at once where Python and TF agree, and one by one elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opdock_cpu.text import csv, numbers

TYPES = [np.dtype(t) for t in ("int32", "int64", "float32", "float64")]
NUMBERS = st.text("0123456789+-.eE x_\nnaif", max_size=34).map(str.encode)
LIKELY = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(str), st.integers(-99, 99).map(str), st.floats().map(repr)
).map(str.encode)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@given(texts=st.lists(st.one_of(LIKELY, NUMBERS), max_size=4))
def test_a_column_is_its_cells(dtype, texts):
    read = numbers.reader(dtype)
    np.testing.assert_equal(numbers.read_all(texts, dtype), [read(text) for text in texts])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_what_only_python_or_only_tf_reads(dtype):
    texts = [
        b"1_0",
        b" 7 ",
        b"+5",
        b"0x10",
        b"-0",
        b"9" * 18,
        b"1\n2",
        b"",
        b"- 1",
        b"0" * 31 + b"1",
    ]
    read = numbers.reader(dtype)
    for text in texts:
        assert numbers.read_all([b"1", text], dtype) == [1, read(text)]


LINES = st.lists(st.text('ab,"\r\n', max_size=8).map(str.encode), max_size=4)


@given(lines=LINES, quotes=st.booleans(), limit=st.integers(0, 3))
def test_rows_are_those_of_single_lines(lines, quotes, limit):
    def found(rows):
        try:
            return list(rows), ""
        except Exception as e:
            return None, str(e)

    singly = (list(csv.fields(line, b",", quotes, limit)) for line in lines)
    assert found(csv.rows(lines, b",", quotes, limit)) == found(singly)
