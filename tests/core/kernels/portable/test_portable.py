"""Mounting portable kernels over a namespace."""

from __future__ import annotations

import array_api_compat.numpy as xp
import numpy as np
import pytest

from opdock.dtypes import FLOATS, float32, float64, int32
from opdock.graph.nodes import registry
from opdock.kernels import portable
from opdock.kernels.select.restrict import restrict
from opdock.kernels.select.selection import KernelIndex, select
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel


@pytest.fixture
def registered(monkeypatch):
    """A registry of one kernel, apart from core's own."""
    monkeypatch.setattr(portable, "_registry", {})
    monkeypatch.setattr(portable, "_mounted", {})
    monkeypatch.setattr(portable, "_homes", dict)
    monkeypatch.setattr(registry, "known_ops", list)

    @portable.portable("Reshape", T=FLOATS, host_inputs=("shape",), may_alias={0: 0})
    def reshape(namespace, sig):
        return lambda x, shape: namespace.reshape(x, tuple(int(d) for d in shape))


def reshape_sig(dtype):
    return NodeSig(
        "Reshape", "r", {"T": dtype, "Tshape": int32}, [(4,), (2,)], [dtype, int32], [(2, 2)],
        [dtype],
    )  # fmt: skip


def test_a_mounted_kernel_gets_the_namespace(registered):
    (kernel,) = portable.mount(xp)
    assert kernel.is_portable and kernel.priority < 0 and kernel.may_alias == {0: 0}
    run = kernel.bind(reshape_sig(float32))
    assert run(np.arange(4.0), np.array([2, 2])).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert kernel.qualname.endswith("reshape")


def test_tables_are_shared_by_namespace_and_types(registered):
    assert portable.mount(xp) is portable.mount(xp)
    assert portable.mount(xp, [float32]) is portable.mount(xp, {float32})
    assert portable.mount(xp) is not portable.mount(xp, [float32])


def test_kernels_are_narrowed_to_the_types_of_the_device(registered):
    index = KernelIndex()
    index.add(portable.mount(xp, [float32]))
    # The shape is int32, which the device lacks as well; but it stays on the host.
    assert select(reshape_sig(float32), index).chosen is not None
    declined = select(reshape_sig(float64), index)
    assert declined.rejections[0].reason == "T is float64; it takes float32"


def test_a_kernel_of_which_nothing_is_left_is_not_mounted(registered):
    assert len(portable.mount(xp, [int32])) == 0


def test_types_come_from_the_op_if_the_kernel_does_not_say():
    kernel = Kernel(op="Softmax", bind=lambda sig: None)
    assert restrict(kernel, frozenset({float32, int32})).dtypes == {"T": {float32}}
    assert restrict(kernel, frozenset({int32})) is None


def test_a_fixed_type_that_the_device_lacks():
    """LogicalNot takes bool and nothing else; Shape gives its result on the host if it says so."""
    assert restrict(Kernel(op="LogicalNot", bind=lambda sig: None), frozenset({float32})) is None
    shape = Kernel(op="Shape", bind=lambda sig: None, host_outputs=("output",))
    assert restrict(shape, frozenset({float32})).dtypes == {"T": {float32}}


def test_a_type_that_a_kernel_computes_in_and_the_device_lacks():
    kernel = Kernel(op="Softmax", bind=lambda sig: None, computes_in=float64)
    assert restrict(kernel, frozenset({float32, float64})).refused == ""
    narrowed = restrict(kernel, frozenset({float32}))
    assert narrowed.refused == "it computes in float64, which the device does not hold"
    with pytest.raises(TypeError, match="Softmax: computes_in= must be a set of DType"):
        Kernel(op="Softmax", bind=lambda sig: None, computes_in={"float64"})


def test_every_family_of_core_mounts():
    table = portable.mount(xp)
    assert all(k.is_portable for k in table)


def test_what_a_device_does_without_stays_in_the_table_with_its_reason():
    table = portable.mount(xp, without={"Softsign": "too hard", "Elu": {float32: "too soft"}})
    (softsign,), elu = table.for_op("Softsign"), table.for_op("Elu")
    assert softsign.refused == "too hard"
    assert {k.refused: float32 in k.dtypes["T"] for k in elu} == {"too soft": True, "": False}
    assert portable.mount(xp).for_op("Softsign")[0].refused == ""


@pytest.mark.parametrize("why", ["", None, 3])
def test_a_refusal_is_a_reason_or_says_one(why):
    with pytest.raises(TypeError, match="Softsign needs a reason or a function to be refused"):
        portable.mount(xp, without={"Softsign": why})


def test_what_nobody_wrote_nobody_refuses():
    with pytest.raises(ValueError, match="there is no portable kernel of Softsing"):
        portable.mount(xp, without={"Softsing": "too hard"})
