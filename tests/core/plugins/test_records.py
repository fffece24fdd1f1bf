"""Records are validated when they are made."""

from __future__ import annotations

import dataclasses

import pytest

from opdock.plugins.records import (
    BackendSpec,
    DeviceAttributes,
    FusionPattern,
    GraphPass,
    P,
    Probe,
    Requirement,
    ToleranceRow,
)

GOOD = {
    "name": "acme", "device_type": "GPU", "own_type": "ACME", "api": (1, 0),
    "probe": "acme.probe:probe", "device": "acme.device:Device", "kernels": ("acme.k:table",),
}  # fmt: skip


def test_a_backend_has_defaults():
    spec = BackendSpec(**GOOD)
    assert (spec.priority, spec.fusions, spec.install_hint, spec.automatic) == (100, (), "", True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.priority = 1


def test_records_are_keyword_only():
    with pytest.raises(TypeError):
        BackendSpec("acme", "GPU", "ACME", (1, 0), 100, "a:b", "a:b", ())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Acme"), ("name", 3), ("name", ""), ("device_type", "gpu"), ("own_type", "a:b"),
        ("api", 1), ("api", (1,)), ("api", (1, "0")), ("api", [1, 0]), ("priority", "high"),
        ("priority", True), ("probe", "acme.probe"), ("probe", len), ("device", "acme:"),
        ("kernels", "acme.k:table"), ("kernels", ("acme.k",)), ("kernels", None),
        ("fusions", (3,)), ("install_hint", None), ("own_type", "GPU"), ("admits", "all"),
        ("admits", (3,)), ("admits", ("",)), ("admits", 3),
    ],
)  # fmt: skip
def test_a_malformed_backend_is_refused_by_field(field, value):
    with pytest.raises((TypeError, ValueError), match=field):
        BackendSpec(**GOOD | {field: value})


def test_who_admits_others_owns_its_pool():
    shared = GOOD | {"device_type": "GPU", "own_type": "ACME"}
    assert BackendSpec(**shared).admits == frozenset()
    assert BackendSpec(**shared | {"device_type": "ACME"}, admits=["a", "b"]).admits == {"a", "b"}
    with pytest.raises(ValueError, match=r"admits needs a device_type that is the own_type"):
        BackendSpec(**shared, admits=["a"])


def test_probes():
    probe = Probe(devices=[DeviceAttributes(index=0), DeviceAttributes(index=1)])
    assert isinstance(probe.devices, tuple)
    with pytest.raises(ValueError, match="same index"):
        Probe(devices=[DeviceAttributes(index=0), DeviceAttributes(index=0)])
    with pytest.raises(TypeError, match="DeviceAttributes"):
        Probe(devices=[0])
    with pytest.raises(TypeError, match="reason"):
        Probe(reason=None)


def test_patterns_are_data():
    pattern = P("Relu|Relu6", P("BiasAdd", P("Conv2D", "x", "w", name="conv", padding="SAME"), "b"))
    assert pattern.ops == ("Relu", "Relu6")
    assert pattern.captures() == ("x", "w", "b")
    assert [p.ops[0] for p in pattern.nodes()] == ["Relu", "BiasAdd", "Conv2D"]
    assert dict(pattern.inputs[0].inputs[0].attrs) == {"padding": "SAME"}
    assert P("Mul", "x", "x").captures() == ("x",)
    assert repr(P("Add", P("Neg", "x"), "y")) == "P('Add', P('Neg', 'x'), 'y')"


@pytest.mark.parametrize("arguments", [(), (3,), ("",), ("Relu", 3), ("Relu", "")])
def test_a_malformed_pattern_is_refused(arguments):
    with pytest.raises(TypeError):
        P(*arguments)


@pytest.mark.parametrize(
    "fields", [{"op": "BiasRelu"}, {"pattern": "Relu"}, {"name": ""}, {"when": True}]
)
def test_a_malformed_fusion_is_refused(fields):
    good = {"name": "f", "pattern": P("Relu", "x"), "op": "acme>Relu"}
    FusionPattern(**good)
    with pytest.raises((TypeError, ValueError)):
        FusionPattern(**good | fields)


def test_passes_and_requirements():
    with pytest.raises(ValueError, match="unknown stage 'whenever'"):
        GraphPass(name="p", stage="whenever", run=print)
    with pytest.raises(TypeError, match="run must be callable"):
        GraphPass(name="p", stage="after_fuse", run=None)
    with pytest.raises(ValueError, match="unknown status"):
        Requirement(name="float64", status="no", reason="r")
    with pytest.raises(ValueError, match="a reason is required"):
        Requirement(name="float64", status="planned", reason="")
    with pytest.raises(ValueError, match="a reason is required"):
        ToleranceRow(op="Exp", dtype="float32", rtol=1.0, atol=1.0, reason="")
