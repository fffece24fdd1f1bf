"""Devices that do not open: the error names device, plugin and reason."""

from __future__ import annotations

import dataclasses
import re

import pytest

import opdock as tf
from opdock.plugin import PluginError, hookimpl, register, unregister
from tests.core.plugins.made import Device, make


def test_a_device_that_does_not_open_says_why(manager):
    def fail(attributes):
        raise OSError("device busy")

    manager.register(make(device=fail))
    (probed,) = manager.devices()
    with pytest.raises(PluginError, match=r"MADE:0 .* cannot be opened: OSError: device busy"):
        manager.open(probed)
    assert manager.devices() == [probed]


@pytest.mark.parametrize("field", ["device", "kernels", "fusions", "compiler"])
@pytest.mark.parametrize(
    ("dotted", "why"),
    [
        ("no_such_driver.parts:thing", "ModuleNotFoundError: No module named 'no_such_driver'"),
        ("json:no_such_thing", "AttributeError: module 'json' has no attribute 'no_such_thing'"),
    ],
    ids=["module", "attribute"],
)
def test_a_name_that_leads_nowhere_is_told(manager, field, dotted, why):
    module = make()
    (spec,) = module.opdock_backends()
    given = (dotted,) if field in {"kernels", "fusions"} else dotted
    spec = dataclasses.replace(spec, **{field: given})
    module.opdock_backends = hookimpl(specname="opdock_backends")(lambda: [spec])
    manager.register(module)
    (probed,) = manager.devices()
    with pytest.raises(PluginError, match=re.escape(f"ImportError: {dotted!r}: {why}")):
        manager.open(probed)


@pytest.mark.parametrize("namespace", ["numpy", object()], ids=["name", "object"])
def test_a_namespace_that_is_none_is_told(manager, namespace):
    manager.register(make(device=type("Odd", (Device,), {"namespace": namespace})))
    (probed,) = manager.devices()
    told = (
        r"MADE:0 .* cannot be opened: TypeError: Odd.namespace is .*, which is no array namespace"
    )
    with pytest.raises(PluginError, match=told):
        manager.open(probed)


def test_a_backend_that_is_put_out_as_its_device_opens_says_why(manager):
    def opdock_kernels(backend):
        raise KeyError("slot")

    manager.register(make(hooks={"opdock_kernels": opdock_kernels}))
    (probed,) = manager.devices()
    told = r"is quarantined: .*opdock_kernels\(\): KeyError: 'slot'"
    for _ in range(2):
        with pytest.raises(PluginError, match=told):
            manager.open(probed)


def test_a_device_that_does_not_open_is_not_asked_for_each_node():
    asked = []
    busy = True

    def open_it(attributes):
        asked.append(attributes)
        if busy:
            raise OSError("device busy")
        return Device(attributes)

    register(make(device=open_it), "busy")
    try:
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [])
            with tf.device("/device:MADE:0"):
                values = [x * float(i) for i in range(30)]
            total = tf.add_n(values)
            with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
                assert session.run(total, {x: 2.0}) == 870.0
            with tf.Session() as session:
                for _ in range(2):  # each time anew: it might open by now
                    before = len(asked)
                    with pytest.raises(
                        tf.errors.InvalidArgumentError, match="OSError: device busy"
                    ):
                        session.run(total, {x: 2.0})
                    assert before < len(asked) < 12
                busy = False
                with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                    session.run(total, {x: 2.0})
                assert "did not open" not in str(caught.value)
    finally:
        unregister("busy")
