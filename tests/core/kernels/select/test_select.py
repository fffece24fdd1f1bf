"""Selection: rank, and an exact reason for every kernel that is not taken."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from opdock import dtypes
from opdock.dtypes import FLOATS, NUMBERS, float32, int32, string
from opdock.kernels.select.selection import KernelIndex, select
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import PORTABLE, Kernel


def kernel(tag, **fields):
    def bind(sig):
        return tag

    bind.__qualname__ = tag
    return Kernel(op="Op", bind=bind, **fields)


def index(*kernels, plugin="p"):
    found = KernelIndex()
    found.add(kernels, plugin, f"dist-{plugin}")
    return found


def sig(**attrs):
    return NodeSig("Op", "node", {"T": float32} | attrs)


def tags(selection):
    chosen = [] if selection.chosen is None else [selection.chosen]
    return [e.kernel.bind.__qualname__ for e in [*chosen, *selection.alternatives]]


def reasons(selection):
    return {r.kernel.rpartition(".")[2]: r.reason for r in selection.rejections}


def test_rank_is_priority_then_specificity_then_order():
    found = index(
        kernel("plain"),
        kernel("second_plain"),
        kernel("specific", dtypes={"T": FLOATS}),
        kernel("urgent", priority=1),
        kernel("portable", label=PORTABLE, priority=50, dtypes={"T": FLOATS}),
    )
    assert tags(select(sig(), found)) == [
        "urgent", "specific", "plain", "second_plain", "portable",
    ]  # fmt: skip


def test_what_types_decide_is_found_once_and_forgotten_with_new_kernels():
    found = index(kernel("floats", dtypes={"T": FLOATS}), kernel("any"))
    first = found.judged("Op", {"T": float32})
    assert first.settled is not None and tags(first.settled) == ["floats", "any"]
    assert found.judged("Op", {"T": float32, "N": 3}) is first
    assert select(sig(), found) is first.settled
    other = found.judged("Op", {"T": int32}).settled
    assert tags(other) == ["any"] and list(reasons(other)) == ["floats"]
    found.add([kernel("late", priority=1)], "q", "dist-q")
    assert tags(select(sig(), found)) == ["late", "floats", "any"]


def test_a_kernel_that_asks_for_more_than_types_is_asked_each_time():
    asked = []
    found = index(kernel("picky", when=lambda s: asked.append(s.name) or True), kernel("any"))
    assert found.judged("Op", {"T": float32}).settled is None
    for _ in range(2):
        assert tags(select(sig(), found)) == ["picky", "any"]
    assert asked == ["node", "node"]


def test_a_label_is_used_only_on_request():
    found = index(kernel("own"), kernel("fast", label="fast", priority=9))
    plain = select(sig(), found)
    assert tags(plain) == ["own"]
    assert reasons(plain) == {"fast": "it is used only on request (_kernel='fast')"}
    asked = select(sig(_kernel="fast"), found)
    assert tags(asked) == ["fast"]
    assert reasons(asked) == {"own": "the node asks for label 'fast'; it has no label"}


def test_portable_kernels_can_be_asked_for():
    found = index(kernel("own"), kernel("portable", label=PORTABLE))
    assert tags(select(sig(_kernel="portable"), found)) == ["portable"]


def test_types_are_matched_by_base_type_and_in_lists():
    found = index(kernel("k", dtypes={"T": FLOATS, "Ts": NUMBERS}))
    good = sig(T=float32.as_ref, Ts=[float32, int32])
    assert tags(select(good, found)) == ["k"]
    assert reasons(select(sig(T=int32, Ts=[]), found)) == {
        "k": "T is int32; it takes bfloat16, float16, float32, float64"
    }
    bad = select(sig(Ts=[float32, string]), found)
    assert reasons(bad)["k"].startswith("Ts is string; it takes bfloat16,")
    absent = select(sig(), found)
    assert reasons(absent) == {"k": "it constrains Ts, which the node does not have (it has T)"}


def test_when_gives_the_reason():
    found = index(
        kernel("says", when=lambda s: "needs a static shape"),
        kernel("no", when=lambda s: False),
        kernel("yes", when=lambda s: s.attrs["T"] is float32),
    )
    result = select(sig(), found, "/device:X:0")
    assert tags(result) == ["yes"]
    assert reasons(result) == {"says": "needs a static shape", "no": "it declines this node"}
    assert {r.device for r in result.rejections} == {"/device:X:0"}
    assert {r.plugin for r in result.rejections} == {"p"}


def test_a_when_that_fails_is_a_rejection(caplog):
    found = index(kernel("bad", when=lambda s: s.attrs["absent"]), kernel("good"))
    with caplog.at_level(logging.CRITICAL, "opdock.kernels"):
        result = select(sig(), found)
    assert tags(result) == ["good"]
    assert reasons(result) == {"bad": "its when() raised KeyError: 'absent'"}


@pytest.mark.parametrize("verdict", [None, 7, [], b"no"])
def test_a_when_that_gives_no_answer_is_a_rejection_and_is_told_once(verdict, caplog):
    found = index(kernel("bad", when=lambda s: verdict), kernel("good"))
    for _ in range(3):
        result = select(sig(), found, f"/device:X:{verdict!r}")
    assert tags(result) == ["good"]
    (rejection,) = result.rejections
    told = f"its when() returned {verdict!r}, which is neither True nor False nor a reason"
    assert (rejection.reason, rejection.fault) == (told, True)
    assert str(rejection) == f"/device:X:{verdict!r} {rejection.kernel} of plugin 'p': {told}"
    (record,) = (r for r in caplog.records if r.name == "opdock.kernels")
    assert f"of plugin 'p' (dist-p) on /device:X:{verdict!r}: {told}" in record.getMessage()


def test_numpys_booleans_are_answers():
    found = index(kernel("yes", when=lambda s: np.True_), kernel("no", when=lambda s: np.False_))
    assert tags(select(sig(), found)) == ["yes"]
    assert reasons(select(sig(), found)) == {"no": "it declines this node"}


def test_guests_come_last_whatever_their_priority():
    found = KernelIndex()
    found.add([kernel("guest", priority=1000)], "g", guest=lambda op: True)
    found.add([kernel("own"), kernel("portable", label=PORTABLE, priority=-100)], "p")
    assert tags(select(sig(), found)) == ["own", "portable", "guest"]
    assert found.ties() == []


@pytest.mark.parametrize(
    ("op", "served", "hint"),
    [
        ("Add", {"AddV2"}, "AddV2"),
        ("AddV2", {"Add", "AddN"}, "Add"),
        (
            "FusedBatchNorm",
            {"FusedBatchNormV2", "FusedBatchNormV3"},
            "FusedBatchNormV2 and FusedBatchNormV3",
        ),
        ("BatchMatMulV2", {"BatchMatMul", "MatMul"}, "BatchMatMul"),
        ("MatMul", {"BatchMatMul", "SparseMatMul"}, ""),
    ],
)
def test_versions_of_an_op_hint_at_each_other(op, served, hint):
    found = KernelIndex()
    found.add([Kernel(op=name, fn=print) for name in served], "p")
    (rejection,) = select(NodeSig(op), found).rejections
    told = f", but there is one for {hint}, of the same family; it may serve both" if hint else ""
    assert rejection.reason == f"no kernel for {op}{told}"


def test_no_kernel_is_a_rejection_too():
    result = select(NodeSig("Other"), index(kernel("k")), "/device:X:0")
    assert result.chosen is None and result.kernel is None
    assert [str(r) for r in result.rejections] == ["/device:X:0: no kernel for Other"]


def test_ties_between_plugins_are_told():
    found = KernelIndex()
    found.add([kernel("one", dtypes={"T": FLOATS})], "a")
    found.add([kernel("two", dtypes={"T": {float32}})], "b")
    found.add([kernel("three", dtypes={"T": dtypes.INTS})], "c")
    assert ["one" in str(t) and "two" in str(t) for t in found.ties()] == [True]
    assert found.ties()[0].kept.plugin == "a"
