"""Array libraries that lack functions: the extensions of the standard are optional, and not every
library has come as far as the standard. Ops that need more run elsewhere, or the error says what
is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.kernels import portable
from tests.plugins import patchy

X = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
PLACE = "/job:localhost/replica:0/task:0/device:PATCHY:0"


@pytest.fixture(autouse=True, scope="module")
def installed() -> Iterator[None]:
    patchy.install()
    yield
    patchy.uninstall()


EXTENSIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Cholesky": ("linalg", tf.linalg.cholesky),
    "MatrixInverse": ("linalg", tf.linalg.inv),
    "FFT": ("fft", lambda x: tf.abs(tf.signal.fft(tf.cast(x, tf.complex64)))),
}
FUNCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Cumsum": ("cumulative_sum", tf.cumsum),
    "Max": ("max", lambda x: tf.reduce_max(x, 1)),
}
WHAT = EXTENSIONS | FUNCTIONS


def on_patchy(build: Callable[[Any], Any]) -> tuple[tf.Graph, Any, Any]:
    with tf.Graph().as_default() as graph, tf.device("/device:PATCHY:0"):
        x = tf.placeholder(tf.float32, [2, 2])
        return graph, x, build(x)


@pytest.mark.parametrize("op", WHAT)
def test_what_is_missing_runs_elsewhere(op):
    graph, x, made = on_patchy(WHAT[op][1])
    on_cpu, fed, right = on_patchy(WHAT[op][1])
    for node in on_cpu.get_operations():
        node._set_device("/cpu:0")
    with tf.Session(graph=on_cpu) as sess:
        expected = sess.run(right, {fed: X})
    with tf.Session(graph=graph, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        for _ in range(2):
            np.testing.assert_allclose(sess.run(made, {x: X}), expected, rtol=1e-5, atol=1e-6)
        rows = {r.op: r for r in sess.explain(made, {x: X}).rows}
        assert rows[op].device.endswith("CPU:0")


@pytest.mark.parametrize("op", EXTENSIONS)
def test_placement_knows_which_extensions_there_are(op):
    graph, x, made = on_patchy(WHAT[op][1])
    with tf.Session(graph=graph) as sess, pytest.raises(tf.errors.InvalidArgumentError) as e:
        sess.run(made, {x: X})
    assert f"of plugin 'core': the namespace has no {WHAT[op][0]}" in e.value.message


@pytest.mark.parametrize("op", FUNCTIONS)
def test_an_error_names_the_function_that_is_missing(op):
    """Of one that is no extension the kernel hears when it runs."""
    graph, x, made = on_patchy(WHAT[op][1])
    with tf.Session(graph=graph) as sess, pytest.raises(tf.errors.UnimplementedError) as e:
        sess.run(made, {x: X})
    told = f"of plugin 'core' (opdock-core) on {PLACE} has no {WHAT[op][0]!r}\n"
    assert told in e.value.message
    assert f"(op {op})" in e.value.message


def names_in(code: CodeType, module: dict[str, Any], seen: set[CodeType]) -> set[str]:
    """All names that a function uses, with the functions of its module that it calls."""
    if code in seen:
        return set()
    seen.add(code)
    found = set(code.co_names)
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    called = [module[n] for n in code.co_names if isinstance(module.get(n), FunctionType)]
    inner += [f.__code__ for f in called if f.__module__ == module["__name__"]]
    return found.union(*(names_in(c, module, seen) for c in inner))


def test_kernels_say_which_extensions_they_call():
    portable.load_families()
    extensions, declared = {"linalg", "fft", "bitcast"}, set()
    for op, uses in portable._registry.items():
        for use in uses:
            function: Any = use.bind
            names = names_in(function.__code__, function.__globals__, set())
            assert extensions & names == {use.extension} - {""}, op
            declared.add(use.extension)
    assert declared == {"", *extensions}
