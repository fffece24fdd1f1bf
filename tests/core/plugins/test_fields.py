"""What plugins make is of the types that are written beside its fields, or is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import opdock.plugin
from opdock.fields import _kinds, check_value
from opdock.plugin import (
    AlongAxis,
    BackendSpec,
    ClusterEngineSpec,
    Control,
    CopyRoute,
    DeviceAttributes,
    DropsAxes,
    Elementwise,
    Formatted,
    FusionModule,
    FusionPattern,
    GraphPass,
    GraphTransform,
    Kernel,
    KernelModule,
    MemoryStats,
    OpSpec,
    P,
    PerAxis,
    Probe,
    Reduction,
    Refusal,
    Requirement,
    ToleranceRow,
    Traits,
    define_op,
)


def copy(buffer: Any, source: Any, destination: Any) -> Any:
    return buffer


GOOD: dict[type, dict[str, Any]] = {
    AlongAxis: {"axis": 0},
    BackendSpec: {
        "name": "acme", "device_type": "ACME", "own_type": "ACME", "api": (1, 0), "probe": "a:b",
        "device": "a:b",
    },
    ClusterEngineSpec: {"name": "acme", "engine": "a:b"},
    CopyRoute: {"src": "ACME", "dst": "HOST", "copy": copy},
    DeviceAttributes: {"index": 0},
    DropsAxes: {"attr": "axis"},
    Elementwise: {},
    Formatted: {"data": (0,)},
    FusionModule: {"patterns": "a:b", "ops": {"Relu"}},
    FusionPattern: {"name": "f", "pattern": P("Relu", "x"), "op": "acme>Relu"},
    GraphPass: {"name": "p", "stage": "after_fuse", "run": print},
    GraphTransform: {"name": "t", "run": print},
    Kernel: {"op": "Relu", "fn": print},
    KernelModule: {"table": "a:b", "ops": {"Relu"}},
    MemoryStats: {},
    PerAxis: {"vectors": (1,)},
    Probe: {},
    Reduction: {},
    Refusal: {},
    Requirement: {"name": "float64", "status": "bug", "reason": "r"},
    ToleranceRow: {"op": "Exp", "dtype": "float32", "rtol": 1e-3, "atol": 0.0, "reason": "r"},
    Traits: {},
}  # fmt: skip
OURS = {
    "Announcement",
    "Candidate",
    "Rejection",
    "Segment",
    "SegmentNode",
    "SegmentValue",
    "SegmentVariable",
}
"""What plugins get, and never make."""

CASES = [(kind, field.name) for kind in GOOD for field in dataclasses.fields(kind)]


def test_all_records_are_here():
    exported = (getattr(opdock.plugin, name) for name in dir(opdock.plugin))
    records = {x.__name__ for x in exported if dataclasses.is_dataclass(x)}
    assert records == OURS | {kind.__name__ for kind in GOOD}


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_what_is_right_is_taken(kind):
    made = kind(**GOOD[kind])
    assert dataclasses.replace(made) is not made


@pytest.mark.parametrize(("kind", "field"), CASES, ids=[f"{k.__name__}.{f}" for k, f in CASES])
def test_each_field_is_looked_at(kind, field):
    given = {k: v for k, v in GOOD[kind].items() if (field, k) != ("bind", "fn")}
    with pytest.raises((TypeError, ValueError), match=field) as caught:
        kind(**given | {field: object()})
    assert kind.__name__ in str(caught.value) or "fusion 'f'" in str(caught.value)


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        (Kernel, "priority", "high"), (Kernel, "priority", True), (Kernel, "out", "no"),
        (Kernel, "since", "1.0"), (Kernel, "may_alias", {"0": 0}), (Kernel, "dtypes", ["T"]),
        (Traits, "reads", "handle"), (Traits, "cost", "WAIT"), (Traits, "captures", (("f",),)),
        (Traits, "effect", "no"), (Traits, "layout", "NHWC"), (BackendSpec, "automatic", "no"),
        (Probe, "installable", "no"), (Probe, "devices", 3), (GraphPass, "default", "no"),
        (GraphPass, "position", "first"), (FusionPattern, "benefit", "much"),
        (FusionPattern, "outputs", "out"), (FusionPattern, "also", (3,)),
        (CopyRoute, "cost", "little"), (CopyRoute, "shares", "no"),
        (Requirement, "dtypes", "float32"), (Requirement, "reason", 3),
        (ToleranceRow, "rtol", "1e-3"), (MemoryStats, "peak", 1.5), (Formatted, "leads", "no"),
    ],
)  # fmt: skip
def test_what_python_would_have_taken(record, field, value):
    """A word that is true, a string that is a sequence, a truth value that is a number."""
    with pytest.raises(TypeError, match=field):
        record(**GOOD[record] | {field: value})


def test_numbers_of_numpys_are_numbers():
    assert Kernel(op="Relu", fn=print, priority=np.int64(3)).priority == 3
    assert MemoryStats(in_use=np.int64(3), peak=None).in_use == 3
    assert ToleranceRow(**GOOD[ToleranceRow] | {"rtol": np.float32(1), "atol": 1}).atol == 1
    assert Traits(reads=["handle"]).reads == ["handle"]


@pytest.mark.parametrize(
    "flag", ["stateful", "commutative", "aggregate", "allows_uninitialized_input", "probe"]
)
def test_the_flags_of_ops(flag):
    with pytest.raises(TypeError, match=f"Op 'acme>Never': {flag} must be a bool, got 'no'"):
        define_op("acme>Never", "x: float -> y: float", **{flag: "no"})


@pytest.mark.parametrize("arguments", [(3, "-> y: int32"), ("acme>Never", 3), ("a>N", "", 3)])
def test_the_texts_of_ops(arguments):
    with pytest.raises(TypeError, match="define_op: .* must be a string, got 3"):
        define_op(*arguments)


@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        ("int", [1, np.int8(1)], [True, 1.0, "1", None]),
        ("int | None", [1, None], [False, "None"]),
        ("float", [1, 1.5, np.float32(1)], [True, "1", None]),
        ("bool", [True, np.False_], [0, "no", None]),
        ("tuple[str, ...]", [(), ("a", "b"), ["a"]], ["ab", ("a", 1), {"a"}]),
        ("tuple[int, int]", [(1, 2), [1, 2]], [(1,), (1, 2, 3), (1, "2"), 12]),
        ("tuple[tuple[str, int], ...]", [(), (("a", 1),)], [("a", 1), (("a",),), (("a", "b"),)]),
        ("Mapping[str, int]", [{}, {"a": 1}], [[], "a", None]),
        ("Callable[[int], bool | str] | None", [print, None, int], [3, "print"]),
    ],
)
def test_annotations(annotation, good, bad):
    for value in good:
        check_value("it", value, annotation)
    for value in bad:
        with pytest.raises(TypeError, match="^it must be "):
            check_value("it", value, annotation)


@pytest.mark.parametrize("annotation", ["Any", "Literal['a']", "Missing", "int | Missing"])
def test_what_is_not_plain_is_not_looked_at(annotation):
    assert _kinds(annotation, {"Any": Any}) == ()


def declared(traits, signature="x: T, v: resource -> y: T", attrs="T: {float}, n: int"):
    """An op that nobody registers, once it has declared traits."""
    flags = dict.fromkeys(("commutative", "aggregate", "allows_uninitialized_input"), False)
    return OpSpec("acme>Never", signature, attrs, stateful=True, expr=None, **flags).declare(traits)


@pytest.mark.parametrize(
    ("traits", "text"),
    [
        (Traits(reads=("w",)), "reads: the op has no argument 'w'"),
        (Traits(own=("x", "vv")), "own: the op has no argument 'vv'; did you mean 'v'?"),
        (Traits(keeps=("z",)), "keeps: the op has no argument or result 'z'"),
        (Traits(captures=(("xs", "f"),)), "captures: the op has no argument 'xs'"),
        (Traits(captures=(("x", "f"),)), "captures: the op has no attribute 'f'"),
        (Traits(validates="m"), "validates: the op has no attribute 'm'"),
        (Traits(layout=DropsAxes("dims")), "layout: the op has no attribute 'dims'"),
        (Traits(layout=AlongAxis(2)), "layout: the op has no argument 2, but 2"),
        (Traits(layout=Formatted((0,), results=(1,))), "layout: the op has no result 1, but 1"),
        (Traits(repeats=-3), "repeats: the op has no argument -3, but 2"),
        (Traits(builtin=True), "builtin is for ops that the runtime itself carries out"),
        (Traits(holds=True), "holds is for ops that the runtime itself carries out"),
        (Traits(control=Control.LOOP), "control: the runtime knows its own ops"),
        (Traits(control=Control.CALL), "a call's function is attached first"),
    ],
)  # fmt: skip
def test_what_an_op_cannot_declare(traits, text):
    with pytest.raises(ValueError, match="Op 'acme>Never': ") as found:
        declared(traits)
    assert text in str(found.value)


def test_what_an_op_may_declare():
    layout = Formatted((0, -1), results=(0,))
    fine = Traits(reads=("v",), keeps=("x", "y"), captures=(("v", "n"),), layout=layout, repeats=1)
    assert declared(fine).traits is fine
    assert declared(Traits(forwards=True, repeats=5), "xs: N * T -> y: T", "N: int, T: type")
    with pytest.raises(ValueError, match="there are 2 results, but 1 arguments"):
        declared(Traits(forwards=True), "x: float -> y: float, z: float", "")
    with pytest.raises(TypeError, match="declare takes Traits, got {}"):
        declared({})
