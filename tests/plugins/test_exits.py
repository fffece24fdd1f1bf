"""`sys.exit` in a plugin, wherever opdock calls it: an error that names it, and no program ends."""

from __future__ import annotations

import contextlib
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    GraphPass,
    KernelTable,
    PluginError,
    Probe,
    hookimpl,
    register,
    unregister,
)

NAME, DEVICE = "leaver", "/device:LEAVER:0"


def leave(*_: Any, **__: Any) -> Any:
    sys.exit(3)


class Whole(BaseDevice):
    """A device that does what it should."""

    def upload(self, array: Any) -> Any:
        return np.array(array)

    def download(self, buffer: Any) -> Any:
        return np.array(buffer)


def plugin(**parts: Any) -> types.ModuleType:
    """A backend of one device and one kernel, with some parts replaced."""
    module = types.ModuleType("leaver_plugin")
    table = KernelTable()
    kernel = {"fn": lambda ctx, x: np.maximum(x, 0), **parts.pop("kernel", {})}
    if "bind" in kernel:
        table.binder("Relu")(kernel["bind"])
    else:
        table.kernel("Relu", when=kernel.get("when"))(kernel["fn"])
    module.table, module.probe = table, lambda: Probe(devices=[DeviceAttributes(index=0)])
    module.Device = type("Device", (Whole,), parts.pop("device", {}))
    module.compiler = parts.pop("compiler", None)
    spec = BackendSpec(
        name=NAME, device_type="LEAVER", own_type="LEAVER", api=(1, 2), priority=-9,
        probe="leaver_plugin:probe", device="leaver_plugin:Device",
        kernels=("leaver_plugin:table",),
        compiler="leaver_plugin:compiler" if module.compiler is not None else "",
    )  # fmt: skip
    module.opdock_backends = hookimpl(specname="opdock_backends")(lambda: [spec])
    for hook, function in parts.items():
        setattr(module, hook, hookimpl(specname=hook)(function))
    return module


@pytest.fixture
def registered() -> Iterator[Callable[[types.ModuleType], Any]]:
    def register_it(module: types.ModuleType) -> Any:
        sys.modules["leaver_plugin"] = module
        return register(module, name=NAME)

    yield register_it
    with contextlib.suppress(KeyError):  # what is in quarantine is registered all the same
        unregister(NAME)
    sys.modules.pop("leaver_plugin", None)


def relu(device: str | None = DEVICE) -> Any:
    with tf.Graph().as_default(), tf.device(device):
        x = tf.placeholder(tf.float32, [2], name="x")
        with tf.Session() as sess:
            return sess.run(tf.nn.relu(x, name="bent"), {x: [1.0, -2.0]}).tolist()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"kernel": {"fn": leave}}, "kernel .*leave of plugin 'leaver' on .*LEAVER:0 raised"),
        (
            {"kernel": {"bind": leave}},
            r"bind\(\) of kernel .*leave of plugin 'leaver' on .*:0 raised",
        ),
        ({"kernel": {"when": leave}}, r"of plugin 'leaver': its when\(\) raised"),
        ({"device": {"upload": leave}}, "the upload from host to .*LEAVER:0 raised"),
        ({"device": {"download": leave}}, "the download from .*LEAVER:0 to host raised"),
        ({"device": {"__init__": leave}}, "LEAVER:0 of plugin 'leaver' .*cannot be opened:"),
        ({"compiler": leave}, "compiler .*leave of backend 'leaver' .*LEAVER:0 raised"),
        ({"compiler": lambda segment: leave}, "the executable of compiler .* 'leaver' .* raised"),
    ],
    ids=["kernel", "bind", "when", "upload", "download", "device", "compiler", "executable"],
)
def test_what_computes(registered, parts, words):
    registered(plugin(**parts))
    with pytest.raises(tf.errors.OpError, match=f"{words} ?SystemExit: 3") as caught:
        relu()
    assert "bent" in str(caught.value) or "[[node x" in str(caught.value)
    assert relu("/cpu:0") == [1.0, 0.0]


@pytest.mark.parametrize("stage", ["before_place", "after_place", "after_fuse"])
def test_a_pass(registered, stage):
    passes = [GraphPass(name="leaves", stage=stage, run=leave)]
    registered(plugin(opdock_graph_passes=lambda: passes))
    told = f"graph pass 'leaves' of plugin 'leaver' failed at {stage}: SystemExit: 3"
    with pytest.raises(tf.errors.InternalError, match=told):
        relu()


def test_a_placement_is_left_out_and_told_of(registered, caplog):
    registered(plugin(opdock_place_node=lambda node: leave()))
    assert relu(None) == [1.0, 0.0]
    assert "opdock_place_node of plugin 'leaver' failed on" in caplog.text
    assert "SystemExit: 3" in caplog.text


def test_a_hook_puts_its_plugin_in_quarantine(registered):
    with pytest.raises(PluginError, match=r"'leaver' .*opdock_graph_passes\(\): SystemExit: 3"):
        registered(plugin(opdock_graph_passes=leave))


def test_the_users_own_functions_may_end_the_program(registered):
    """In a step, in a body of one, and in what datasets call."""
    registered(plugin())
    with tf.Graph().as_default(), tf.Session() as sess:
        alone = tf.py_func(leave, [1.0], tf.float32)
        more = functools.partial(tf.py_func, leave, [1], tf.int32)
        inside = tf.while_loop(
            lambda i: i < 3, lambda i: tf.ensure_shape(i + more(), []), [tf.constant(0)]
        )
        dataset = tf.data.Dataset.range(3).map(lambda x: tf.py_func(leave, [x], tf.int64))
        read = dataset.make_one_shot_iterator().get_next()
        for fetch in (alone, inside, read):
            with pytest.raises(SystemExit):
                sess.run(fetch)
