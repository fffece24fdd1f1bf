"""Kernel records and tables."""

from __future__ import annotations

import pytest

from opdock import dtypes
from opdock.kernels.select.table import Kernel, KernelTable


def bind(sig):
    return lambda x: x


def test_decorators_sort_fields_from_type_constraints():
    table = KernelTable()

    @table.kernel("Sort", "SortV2", T=dtypes.FLOATS | dtypes.INTS, host_inputs=("k",), priority=3)
    def sort(ctx, x, k):
        return x

    @table.binder("Abs", T=dtypes.float32, out=True, may_alias={0: 0})
    def absolute(sig):
        return abs

    first, second, third = table
    assert (first.op, second.op, first.fn, first.bind) == ("Sort", "SortV2", sort, None)
    assert first.dtypes == {"T": dtypes.FLOATS | dtypes.INTS}
    assert first.host_inputs == {"k"} and first.priority == 3
    assert third.dtypes == {"T": {dtypes.float32}} and third.out and third.may_alias == {0: 0}
    assert table.ops() == ["Abs", "Sort", "SortV2"]
    assert table.for_op("Abs") == (third,)
    assert third.qualname.endswith("absolute")


@pytest.mark.parametrize(
    ("fields", "error", "told"),
    [
        ({}, ValueError, "exactly one of bind= and fn="),
        ({"bind": bind, "fn": bind}, ValueError, "exactly one"),
        ({"bind": 3}, TypeError, "callable"),
        ({"fn": bind, "out": True}, ValueError, "out=True needs a binder"),
        ({"bind": bind, "when": True}, TypeError, "when must be callable"),
        ({"bind": bind, "dtypes": {"T": "float"}}, TypeError, "T= must be a set of DType"),
        ({"bind": bind, "dtypes": {"T": frozenset()}}, TypeError, "T= must be a set of DType"),
        ({"bind": bind, "dtypes": {"T": 3}}, TypeError, "T= must be a set of DType"),
        ({"bind": bind, "host_inputs": (1,)}, TypeError, "host_inputs must hold argument names"),
    ],
)
def test_a_malformed_record_is_refused(fields, error, told):
    with pytest.raises(error, match=told):
        Kernel(op="Abs", **fields)


def test_a_record_is_frozen_and_holds_copies():
    types = {"T": {dtypes.float32}}
    kernel = Kernel(op="Abs", bind=bind, dtypes=types)
    types["T"].clear()
    assert kernel.dtypes["T"] == {dtypes.float32}
    with pytest.raises(TypeError):
        kernel.dtypes["T"] = frozenset()
    with pytest.raises(AttributeError):
        kernel.op = "Neg"


def test_a_table_takes_only_kernels():
    with pytest.raises(TypeError, match="takes a Kernel"):
        KernelTable().add(bind)
    with pytest.raises(TypeError, match="at least one op"):
        KernelTable().kernel(T=dtypes.FLOATS)
