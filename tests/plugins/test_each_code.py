"""Each code of opdock's own errors, provoked: the error is of a class that its page names."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import opdock as tf
from opdock import codes
from opdock.cli.main import main
from opdock.mapping import names
from opdock.plugin import PluginError, define_op
from opdock.plugins.manager import PluginManager
from tests.core.plugins.made import make
from tests.plugins import explosive, fickle
from tests.plugins.explosive import blast_op, lit

FICKLE = "/device:FICKLE:0"
SOFT = tf.ConfigProto(allow_soft_placement=True)
HARD = tf.ConfigProto(allow_soft_placement=False)
homeless_op = define_op("homeless>Homeless", "x: float -> y: float")
homeless_op.shape(lambda sig: sig.shapes[0])


class Provoked(dict[str, Callable[[pytest.MonkeyPatch], Any]]):
    """What provokes a code, by the code."""

    def __call__(self, code: str) -> Callable[[Any], Any]:
        def register(provoke: Callable[[pytest.MonkeyPatch], Any]) -> Any:
            assert code not in self
            self[code] = provoke
            return provoke

        return register


provokes = Provoked()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OPDOCK_STRICT_PLUGINS", raising=False)
    explosive.install()
    fickle.install()
    with tf.Graph().as_default():
        yield
    fickle.uninstall()
    explosive.uninstall()


def step(config: Any, device: str = FICKLE) -> tuple[tf.Session, Any, Any]:
    """A session, a sum on a device, and what feeds it."""
    x = tf.placeholder(tf.float32, [2])
    with tf.device(device):
        y = x + x
    return tf.Session(config=config), y, {x: [1.0, 2.0]}


# ---------------------------------------------------------------- placement and devices
@provokes("OPD-PLACE-001")
def unknown_device(patch: pytest.MonkeyPatch) -> None:
    session, y, feeds = step(HARD, "/device:NOWHERE:0")
    session.run(y, feeds)


@provokes("OPD-PLACE-002")
def no_kernel(patch: pytest.MonkeyPatch) -> None:
    tf.Session().run(homeless_op(tf.placeholder_with_default([1.0], [None])))


@provokes("OPD-PLACE-003")
def lost_before(patch: pytest.MonkeyPatch) -> None:
    session, y, feeds = step(HARD)
    fickle.demand.lost = True
    with pytest.raises(tf.errors.UnavailableError):
        session.run(y, feeds)
    with tf.device(FICKLE):
        another = y * 2.0
    session.run(another, feeds)


@provokes("OPD-PLACE-004")
def nobody_takes_over(patch: pytest.MonkeyPatch) -> None:
    with lit(tf.errors.UnimplementedError(None, None, "not like this")):
        tf.Session(config=SOFT).run(blast_op(tf.placeholder_with_default([1.0], [None])))


@provokes("OPD-PLACE-005")
def no_device(patch: pytest.MonkeyPatch) -> None:
    session, y, feeds = step(tf.ConfigProto(device_filters=["/device:NOWHERE:0"]), "")
    session.run(y, feeds)


@provokes("OPD-DEVICE-001")
def lost(patch: pytest.MonkeyPatch) -> None:
    session, y, feeds = step(HARD)
    fickle.demand.lost = True
    session.run(y, feeds)


@provokes("OPD-DEVICE-002")
def no_room_for_a_result(patch: pytest.MonkeyPatch) -> None:
    count = tf.get_variable("count", initializer=0.0)
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([tf.assign_add(count, 1.0)]), tf.device(FICKLE):
        y = tf.add(x, x)
        z = tf.multiply(y, y)
    session = tf.Session(config=SOFT)
    session.run(count.initializer)
    # There is room for `x` alone, and the step has counted: it does not run again elsewhere.
    fickle.demand.planned = {1: "declined"}
    fickle.demand.room = 8
    session.run(z, {x: [1.0, 2.0]})


@provokes("OPD-DEVICE-003")
def cannot_be_opened(patch: pytest.MonkeyPatch) -> None:
    def fail(attributes: Any) -> None:
        raise OSError("device busy")

    found = manager(patch)
    found.register(make(device=fail))
    found.open(found.devices()[0])


# ---------------------------------------------------------------- kernels
@provokes("OPD-KERNEL-001")
def kernel_fails(patch: pytest.MonkeyPatch) -> None:
    with lit(AssertionError("boom")):
        tf.Session().run(blast_op(tf.placeholder_with_default([1.0], [None])))


@provokes("OPD-KERNEL-002")
def kernel_lies(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("OPDOCK_CHECK", "1")
    patch.setattr(fickle, "run", lambda fn, *inputs: fickle.Buffer(np.zeros(3, np.float64)))
    session, y, feeds = step(SOFT)
    session.run(y, feeds)


# ---------------------------------------------------------------- plugins
def manager(patch: pytest.MonkeyPatch) -> PluginManager:
    """A manager that sees no installed plugin."""
    patch.setattr("opdock.plugins.discovery.announced", lambda *groups: [])
    return PluginManager()


def refused(**fields: Any) -> Callable[[pytest.MonkeyPatch], None]:
    def provoke(patch: pytest.MonkeyPatch) -> None:
        manager(patch).register(make(**fields))

    return provoke


def fails() -> None:
    raise RuntimeError("no such library")


provokes("OPD-PLUGIN-001")(refused(hooks={"opdock_ops": fails}))
provokes("OPD-PLUGIN-002")(refused(surprise=1))
provokes("OPD-PLUGIN-003")(refused(api=(2, 0)))
provokes("OPD-PLUGIN-004")(refused(api=(0, 3)))
provokes("OPD-PLUGIN-005")(refused(hooks={"opdock_kernel": lambda backend: []}))


@provokes("OPD-PLUGIN-006")
def duplicate(patch: pytest.MonkeyPatch) -> None:
    found = manager(patch)
    found.register(make())
    found.register(make())


def strict_probe(patch: pytest.MonkeyPatch, probe: Callable[[], Any]) -> None:
    """Has what a probe does raise, where it costs only its backend otherwise."""
    patch.setenv("OPDOCK_STRICT_PLUGINS", "1")
    found = manager(patch)
    found.register(make(probe))
    found.devices()


@provokes("OPD-PLUGIN-007")
def probe_crashes(patch: pytest.MonkeyPatch) -> None:
    strict_probe(patch, lambda: 1 / 0)


@provokes("OPD-PLUGIN-008")
def probe_hangs(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("OPDOCK_PROBE_TIMEOUT", "0.05")
    never = threading.Event()
    strict_probe(patch, lambda: never.wait())


@provokes("OPD-PLUGIN-009")
def blocked(patch: pytest.MonkeyPatch) -> str:
    patch.setenv("OPDOCK_DISABLE", "opencl")
    return CliRunner().invoke(main, ["doctor"]).stdout


# ---------------------------------------------------------------- names
@provokes("OPD-NAME-001")
def not_covered(patch: pytest.MonkeyPatch) -> None:
    """Whatever is still to come: the first name that is there in TensorFlow alone."""
    for path, known in names.table().public.items():
        with contextlib.suppress(ImportError):
            module = importlib.import_module(f"opdock.{path}" if path else "opdock")
            for name in known:
                try:
                    getattr(module, name)
                except AttributeError as e:
                    if "OPD-NAME-001" in str(e):
                        raise


@provokes("OPD-NAME-002")
def left_out(patch: pytest.MonkeyPatch) -> None:
    tf.config.experimental_list_devices


@provokes("OPD-NAME-003")
def internal(patch: pytest.MonkeyPatch) -> None:
    tf.python.ops.array_ops._no_such_internal_name


@provokes("OPD-NAME-004")
def already_imported(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    tf.install_as_tensorflow()


# ---------------------------------------------------------------- clusters
@provokes("OPD-CLUSTER-001")
def nobody_answers(patch: pytest.MonkeyPatch) -> None:
    tf.train.Server({"ps": ["nowhere:1"]}, job_name="ps", protocol="carrier")


@provokes("OPD-CLUSTER-002")
def one_task_only(patch: pytest.MonkeyPatch) -> None:
    tasks = {"ps": ["codes:1"], "worker": ["codes:2"]}
    servers = [tf.train.Server(tasks, job_name=job) for job in tasks]
    tf.Session(servers[1].target).shadow("/device:ECHO:0")


@pytest.mark.parametrize("code", codes.CODES)
def test_it_is_told(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    meaning = codes.CODES[code].meaning
    try:
        told, error = provokes[code](monkeypatch), None
    except Exception as e:
        told, error = str(e).partition("\n")[0], e
    assert told is not None, "nothing is wrong"
    assert told.count(f"[{code}]") == 1, told
    if isinstance(error, PluginError):
        assert codes.OF_KIND[error.kind] == code
        assert f"`{error.kind}`" in meaning or "`PluginError`" in meaning
    elif error is not None:
        classes = {c.__name__ for c in type(error).__mro__}
        assert classes & set(re.findall(r"`(\w+)`", meaning)), meaning
    else:
        assert f"`{next(k for k, c in codes.OF_KIND.items() if c == code)}`" in meaning
