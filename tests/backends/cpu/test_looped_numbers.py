"""Loops over numbers and coordinates are right at the edges: least numbers, NaNs, the outside."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.fake_quant import quantize_and_dequantize
from opdock_cpu import picking, quotients, stepping
from opdock_cpu.jit import looped
from tests.backends.cpu.looped import given

Both = Callable[..., Any]
RNG = np.random.default_rng(31)


@pytest.fixture(autouse=True)
def _of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(looped, "_SMALL", 0)
    for module, name in ((picking, "MANY"), (quotients, "_MANY"), (stepping, "_MANY")):
        monkeypatch.setattr(module, name, 1)


def _same(pair: Any) -> None:
    for found, wanted in zip(*pair, strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)


# ---------------------------------------------------------------- whole numbers
def _cut(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "FloorDiv": lambda a, b: a // b,
    "FloorMod": lambda a, b: a % b,
    "TruncateDiv": _cut,
    "TruncateMod": lambda a, b: a - _cut(a, b) * b,
}
_SHAPES = [((40, 3), (3,)), ((9, 3), (9, 3)), ((5, 1, 4), (4,)), ((3,), (7, 3)), ((7, 1), (7, 20))]


@pytest.mark.parametrize("kind", ["int8", "uint32", "int32", "int64"])
@pytest.mark.parametrize("op", _DIVISIONS)
def test_divisions(op: str, kind: str) -> None:
    info, exact = np.iinfo(kind), np.frompyfunc(_DIVISIONS[op], 2, 1)
    span = info.max - info.min + 1
    # Of the least number there is no quotient by -1: it wraps around.
    wrapped = np.frompyfunc(lambda v: (v - info.min) % span + info.min, 1, 1)
    for left, right in _SHAPES:
        x = RNG.integers(info.min, info.max, left, kind, endpoint=True)
        y = RNG.integers(max(info.min, -9), 9, right, kind)
        y[y == 0] = 1
        x.flat[0], y.flat[0] = info.min, info.max if info.min == 0 else -1
        whole = exact(x.astype(object), y.astype(object))
        expected = wrapped(whole).astype(kind)
        answer = quotients.divided(x, y, None, op.endswith("Mod"), op.startswith("Floor"))
        assert answer is not None
        found, by_zero = answer
        assert found.dtype == x.dtype and not by_zero
        np.testing.assert_array_equal(found, expected)


def test_a_divisor_of_zero_is_told_in_a_large_tensor(both: Both) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        both(lambda: given(np.ones((50, 3), np.int32)) // given(np.array([1, 0, 2], np.int32)))


# ---------------------------------------------------------------- numbers of a type
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_the_next_number(kind: str) -> None:
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, np.finfo(kind).max]
    special += [np.finfo(kind).smallest_subnormal, -np.finfo(kind).tiny]
    x, y = (a.reshape(-1).astype(kind) for a in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        wanted = np.nextafter(x, y)
        towards_two = np.nextafter(x, np.array(2, kind))
    found = stepping.next_after(x, y, None)
    assert found is not None
    np.testing.assert_array_equal(found, wanted)
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.signbit(wanted[zeros]))
    np.testing.assert_array_equal(stepping.next_after(x, np.array(2, kind), None), towards_two)


@pytest.mark.parametrize("mode", ["HALF_TO_EVEN", "HALF_UP"])
@pytest.mark.parametrize("range_given", [True, False])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_multiples(both: Both, kind: str, axis: int, range_given: bool, mode: str) -> None:
    x = RNG.integers(-300, 300, (4, 5, 6)).astype(kind) / 64
    x[0, 0, 0] = np.nan if range_given else 0
    ends = np.linspace(1, 2, x.shape[axis]) if axis >= 0 else np.array(1.5)

    def build() -> Any:
        return tf.raw_ops.QuantizeAndDequantizeV2(
            input=given(x), input_min=-ends.astype(kind), input_max=ends.astype(kind), num_bits=5,
            range_given=range_given, round_mode=mode, axis=axis,
        )  # fmt: skip

    _same(both(build, "_on_one" if axis == -1 else "_on_many"))


def test_gradients_pass_through_multiples(both: Both) -> None:
    def build() -> Any:
        x = given(RNG.normal(size=99).astype(np.float32))
        return tf.gradients(quantize_and_dequantize(x, -1.0, 1.0, True), x)

    _same(both(build))


# ---------------------------------------------------------------- one of sorted rows
@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int8", "int32", "uint16"])
@pytest.mark.parametrize("length", [1, 2, 3, 50, 333])
def test_nth_elements(both: Both, kind: str, length: int) -> None:
    x = RNG.integers(0, 9, (12, length)).astype(kind)
    x[1:3] = np.sort(RNG.integers(0, 99, (2, length)), axis=1)
    x[3] = 4
    if kind.startswith("float"):
        x[4, ::3], x[5], x[6, 0], x[7, -1] = np.nan, np.nan, -np.inf, np.inf

    def build() -> Any:
        return [
            tf.contrib.nn.nth_element(given(x), n, reverse=reverse)
            for n in sorted({0, length // 2, length - 1}) for reverse in (False, True)
        ]  # fmt: skip

    _same(both(build, "_select"))


# ---------------------------------------------------------------- coordinates
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", ["bool", "float16", "float32", "complex128"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_slices_at_coordinates(both: Both, depth: int, kind: str, index: Any) -> None:
    params = RNG.integers(0, 100, (5, 6, 7)).astype(kind)
    places = np.stack([RNG.integers(0, n, (8, 9)) for n in params.shape[:depth]], -1).astype(index)
    _same(both(lambda: tf.gather_nd(given(params), given(places)), "_pick"))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["uint8", "float32", "complex128"])
def test_slices_by_index(both: Both, kind: str, axis: int) -> None:
    params, places = RNG.integers(0, 100, (5, 6, 7)).astype(kind), RNG.integers(0, 5, (3, 11))
    _same(both(lambda: tf.gather(given(params), given(places), axis=axis), "_pick"))


@pytest.mark.parametrize("bad", [-1, 5])
@pytest.mark.parametrize("way", ["gather", "gather_nd", "scatter_nd", "with dense"])
def test_what_is_outside_is_told(both: Both, way: str, bad: int) -> None:
    places = RNG.integers(0, 5, (70, 1))
    places[63] = bad
    said = rf"indices\[63(,0)?\] = \[?{bad}\]? (is not in|does not index into|is out of bounds)"

    def build() -> Any:
        where, rows = given(places), given(np.ones(5, np.float32))
        if way == "gather":
            return tf.gather(rows, where)
        if way == "gather_nd":
            return tf.gather_nd(rows, where)
        ones = given(np.ones(70, np.float32))
        if way == "scatter_nd":
            return tf.scatter_nd(where, ones, [5])
        return (tf.SparseTensor(where, ones, [5]) * rows).values

    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        both(build)


@pytest.mark.parametrize("op", ["Add", "Mul", "Div"])
@pytest.mark.parametrize("kind", ["float16", "float32", "int32", "complex64"])
@pytest.mark.parametrize("shape", [(4, 5, 6), (6,), (5, 1), (1, 1, 6), ()])
def test_dense_tensors_at_cells(both: Both, shape: Any, kind: str, op: str) -> None:
    cells = np.stack([RNG.integers(0, n, 80) for n in (4, 5, 6)], 1)
    dense, values = (RNG.integers(1, 9, s).astype(kind) for s in (shape, (80,)))

    def build() -> Any:
        return getattr(tf.raw_ops, f"SparseDenseCwise{op}")(
            sp_indices=given(cells), sp_values=given(values), sp_shape=[4, 5, 6],
            dense=given(dense),
        )  # fmt: skip

    wide = kind != "float16" and not (op == "Div" and kind == "int32")
    _same(both(build, *(["_pick"] if wide else [])))


# ---------------------------------------------------------------- parts of variables
@pytest.mark.parametrize("resource", [False, True])
def test_a_part_is_written_where_it_is(resource: bool) -> None:
    start = RNG.normal(size=(5000, 8)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.get_variable("table", initializer=start, use_resource=resource)
        value = tf.placeholder(tf.float32)
        change = table[10:4000:3, ::-2].assign(value).op
        session.run(tf.global_variables_initializer())
        kept = session.run(table)
        session.run(change, {value: 3.0})
        (cell,) = session._engine.resources.items("variable")
        where = cell.read().ctypes.data
        rows = np.arange(1330 * 4, dtype=np.float32).reshape(1330, 4)
        session.run(change, {value: rows})
        assert cell.read().ctypes.data == where
        expected = start.copy()
        expected[10:4000:3, ::-2] = rows
        np.testing.assert_array_equal(session.run(table), expected)
        np.testing.assert_array_equal(kept, start)
        with pytest.raises(tf.errors.InvalidArgumentError, match="instead of"):
            session.run(change, {value: rows[1:]})


@pytest.mark.parametrize("shape", [(600, 512), (512, 700), (1030, 545), (2, 300, 513)])
@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "complex64"])
def test_transposed_matrices(both: Both, kind: str, shape: Any) -> None:
    x = RNG.integers(0, 100, shape).astype(kind)
    turned = tuple(range(len(shape) - 2)) + (len(shape) - 1, len(shape) - 2)
    found, wanted = both(lambda: tf.transpose(given(x), turned))
    _same((found, wanted))
    np.testing.assert_array_equal(found[0], x.transpose(turned))


def test_nothing_is_picked_of_nothing() -> None:
    none = np.empty((0, 2), np.int64)
    assert picking.places(none, (3, 4)) is None
    assert picking.picked(np.ones(3), none, (3, 4), (4, 1), 1) is None
