"""Answers of plugins that are of the wrong kind: each is told where it was given, and whose it is.

Without `OPDOCK_CHECK`: what is found here is found in every program.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

import array_api_compat.numpy
import numpy as np
import pytest

import opdock as tf
from opdock.plugin import (
    FLOATS,
    BackendSpec,
    BaseDevice,
    CopyRoute,
    DeviceAttributes,
    KernelTable,
    Probe,
    define_op,
    hookimpl,
    register,
    unregister,
)
from opdock.plugins.manager import get_manager

NAMES: Final = itertools.count()
X: Final = np.array([1.0, 2.0, 3.0], np.float32)


class Sound(BaseDevice):
    """NumPy's arrays."""

    namespace = array_api_compat.numpy

    def upload(self, array: np.ndarray[Any, Any]) -> Any:
        """A copy."""
        return np.array(array)

    def download(self, buffer: Any) -> Any:
        """A copy."""
        return np.array(buffer)


class Lists(Sound):
    def download(self, buffer: Any) -> Any:
        return buffer.tolist()


class Surrenders(Sound):
    def surrender(self, buffer: Any) -> Any:
        return "mine"


class Short(Sound):
    def empty(self, shape: Any, dtype: Any) -> Any:
        return np.empty((7,), dtype.np)


class Stubborn(Sound):
    def configure(self, options: Any) -> None:
        raise ValueError("options?")


class Wordy(Sound):
    refuses: Any = "everything"


class Placed(Sound):
    dlpack: Any = "cpu"


DEVICES: Final[dict[type[Sound], tuple[type[Exception], str]]] = {
    Lists: (tf.errors.InternalError, r"the download from .*:SLOPPY:0 gave a list, expected a num"),
    Surrenders: (tf.errors.InternalError, r"the download from .*:SLOPPY:0 gave a str, expected"),
    Short: (
        tf.errors.InternalError,
        r"Short\.empty gave a ndarray of shape \[7\], expected a buffer of shape \[3\]",
    ),
    Stubborn: (
        tf.errors.InvalidArgumentError,
        r"SLOPPY:0 of plugin 'sloppy' .* options: configure\(\) raised ValueError: options\?",
    ),
    Wordy: (
        tf.errors.InvalidArgumentError,
        r"Wordy\.refuses must be a mapping of op types to reasons, got 'everything'",
    ),
    Placed: (
        tf.errors.InvalidArgumentError,
        r"Placed\.dlpack must be what __dlpack_device__ gives, such as .*, or None, got 'cpu'",
    ),
}


def backend(device: type[Sound]) -> ModuleType:
    made: Any = ModuleType("sloppy")

    @hookimpl
    def opdock_backends() -> Iterator[BackendSpec]:
        yield BackendSpec(
            name="sloppy",
            device_type="SLOPPY",
            own_type="SLOPPY",
            api=(1, 2),
            priority=-50,
            probe="sloppy:probe",
            device="sloppy:device",
        )

    made.opdock_backends, made.device = opdock_backends, device
    made.probe = lambda: Probe(devices=(DeviceAttributes(index=0),))
    return made


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[ModuleType], None]]:
    """Registers a module until the test is over."""
    taken: list[str] = []

    def take(module: ModuleType) -> None:
        monkeypatch.setitem(sys.modules, module.__name__, module)
        register(module, module.__name__)
        taken.append(module.__name__)

    yield take
    for name in taken:
        unregister(name)
    get_manager().close()


@pytest.mark.parametrize("device", DEVICES, ids=lambda d: d.__name__)
def test_a_device_that_answers_something_else(device: type[Sound], plugin: Any) -> None:
    plugin(backend(device))
    kind, words = DEVICES[device]
    with tf.Graph().as_default(), tf.device("/device:SLOPPY:0"):
        x = tf.placeholder(tf.float32, [3])
        y = tf.tanh(x) * x + 1.0
        with pytest.raises(kind, match=words), tf.Session() as sess:
            sess.run(y, {x: X})


def op(**parts: Any) -> Any:
    """An op type of its own for each test."""
    signature = parts.pop("signature", "x: T -> y: T")
    made = define_op(f"sloppy>Op{next(NAMES)}", signature, "T: {float, double}", probe=True)
    made.shape(parts.pop("shape", lambda sig: sig.shapes[0]))
    made.decomposition(parts.pop("decomposition", lambda sig, x: tf.identity(x)))
    return made


ROUTES: Final[dict[str, tuple[Callable[..., Any], str]]] = {
    "nothing": (lambda b, s, d: None, r"the .*route.* from .*:0 to .*:1 gave None, expected a buf"),
    "a list": (lambda b, s, d: [1.0], r"the .*route.* from .*:0 to .*:1 gave a list, expected a b"),
    "an error": (lambda b, s, d: 1 // 0, r"by zero\n\t \(the .*route.* from .*:0 to .*:1"),
}


@pytest.mark.parametrize("case", ROUTES)
def test_a_route_that_brings_something_else(case: str, plugin: Any) -> None:
    function, words = ROUTES[case]
    module: Any = backend(Sound)

    def route(buffer: Any, src: Any, dst: Any) -> Any:
        return function(buffer, src, dst)

    @hookimpl
    def opdock_copy_routes() -> Iterator[CopyRoute]:
        yield CopyRoute(src="SLOPPY", dst="SLOPPY", cost=0.1, copy=route)

    module.opdock_copy_routes = opdock_copy_routes
    module.probe = lambda: Probe(devices=[DeviceAttributes(index=i) for i in range(2)])
    plugin(module)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        with tf.device("/device:SLOPPY:0"):
            y = tf.tanh(x)
        with tf.device("/device:SLOPPY:1"):
            z = y + 1.0
        with pytest.raises(tf.errors.OpError, match=words), tf.Session() as sess:
            sess.run(z, {x: X})


def test_a_placement_that_fails_at_every_node_is_told_once(
    plugin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    module: Any = ModuleType("sloppy_placement")

    @hookimpl
    def opdock_place_node(node: Any) -> str:
        raise LookupError("no plan")

    module.opdock_place_node = opdock_place_node
    plugin(module)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        y = tf.tanh(tf.matmul(x[None], tf.ones([3, 3])) + 1.0)
        with tf.Session() as sess, caplog.at_level("WARNING", "opdock.plugins"):
            assert sess.run(y, {x: X}).shape == (1, 3)
    (told,) = [r.getMessage() for r in caplog.records if "opdock_place_node" in r.getMessage()]
    assert "of plugin 'sloppy_placement' failed on" in told and "LookupError: no plan" in told


SHAPES: Final[dict[str, tuple[Any, str]]] = {
    "words": ("3", "gave '3', expected a tuple of lengths"),
    "number": (3, "gave 3, expected a tuple of lengths"),
    "list of lengths": ([3], "gave 3, expected a tuple of lengths"),
    "less than nothing": ((-1,), r"gave \(-1,\), expected a tuple of lengths"),
    "fraction": ((2.5,), r"gave \(2\.5,\), expected a tuple of lengths"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_a_shape_that_is_none(case: str) -> None:
    given, words = SHAPES[case]
    made = op(shape=lambda sig: given)
    with tf.Graph().as_default(), pytest.raises(TypeError, match=words) as caught:
        made(tf.placeholder(tf.float32, [3]))
    assert f"The shape function of {made.name} ({__file__}:" in str(caught.value)


@pytest.mark.parametrize(
    "given", [np.array([3]), tf.TensorShape([3]), (np.int64(3),), (tf.Dimension(3),)], ids=repr
)
def test_a_shape_in_another_form_is_taken(given: Any) -> None:
    with tf.Graph().as_default():
        assert op(shape=lambda sig: given)(tf.placeholder(tf.float32)).raw_shape == (3,)


DECOMPOSITIONS: Final[dict[str, tuple[Callable[..., Any], str]]] = {
    "two": (lambda sig, x: (x, x), "gives 2 outputs, the op has 1"),
    "another type": (
        lambda sig, x: tf.cast(x, tf.float64),
        "gives output 0 as float64, the op has float32",
    ),
    "no tensor": (lambda sig, x: np.ones(3), "gives a ndarray as output 0, where a tensor is exp"),
    "raises": (lambda sig, x: sig.attrs["nope"], "raised KeyError: 'nope'"),
}


@pytest.mark.parametrize("case", DECOMPOSITIONS)
def test_a_decomposition_that_is_none(case: str) -> None:
    function, words = DECOMPOSITIONS[case]
    made = op(decomposition=function)
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        y = made(x)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(y, {x: X})
    assert f"decomposition: {words}" in caught.value.message
    assert __file__ in caught.value.message


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("traced", [False, True])
def test_results_that_are_not_as_many_as_the_ops(count: int, traced: bool, plugin: Any) -> None:
    """By the program's line, and step by step."""
    made = define_op(
        f"sloppy>Op{next(NAMES)}", "x: T -> y: T, z: T", "T: {float, double}", probe=True
    )
    made.shape(lambda sig: [sig.shapes[0]] * 2)
    table, pack = KernelTable(), ModuleType("sloppy_pack")

    @table.kernel(made.name, T=FLOATS)
    def several(ctx: Any, x: Any) -> Any:
        return tuple(x * i for i in range(count))

    @hookimpl
    def opdock_kernels(backend: str, device: Any) -> Iterator[KernelTable]:
        if backend == "cpu":
            yield table

    pack.opdock_kernels = opdock_kernels  # type: ignore[attr-defined]
    plugin(pack)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) if traced else None
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        y, z = made(x)
        with tf.Session() as sess, pytest.raises(tf.errors.InternalError) as caught:
            metadata = tf.RunMetadata() if traced else None
            sess.run(y + z, {x: X}, options=options, run_metadata=metadata)
    assert "several of plugin 'sloppy_pack'" in caught.value.message
    assert "did not give 2 results" in caught.value.message


def test_several_results_of_an_op_with_a_prefix() -> None:
    """Its name is no identifier of Python's; the names of its results are."""
    made = define_op(
        f"3rd>Party{next(NAMES)}", "x: T -> low: T, high: T", "T: {float, double}", probe=True
    )
    made.shape(lambda sig: [sig.shapes[0]] * 2)
    made.decomposition(lambda sig, x: (x - 1.0, x + 1.0))
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3])
        found = made(x)
        with tf.Session() as sess:
            low, high = sess.run([found.low, found.high], {x: X})
    assert (low == X - 1).all() and (high == X + 1).all()
