"""Generated clusters against NumPy: layouts, types, reductions, several results, threads."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import array_api_compat.numpy as xp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opdock as tf
from opdock.plugin import CLUSTER, NodeSig, as_dtype, codegen
from opdock_cpu.jit import cluster, compiled
from opdock_cpu.jit.llvm import Code, compile_ir
from opdock_cpu.threads import threads, use_threads

RNG = np.random.default_rng(5)


def sig_of(
    texts: list[str], inputs: dict[str, Any], outputs: list[str], *reduces: codegen.Reduce,
    members: int = 5,
) -> NodeSig:  # fmt: skip
    types = {name: as_dtype(a.dtype) for name, a in inputs.items()}
    results = [as_dtype(t) for t in outputs]
    line = codegen.lower([codegen.parse(t) for t in texts], types, results=results)
    shape = np.broadcast_shapes(*(a.shape for a in inputs.values()))
    shapes = [shape] * len(texts)
    for at, reduce in enumerate(reduces, len(texts) - len(reduces)):
        shapes[at] = tuple(
            1 if i in reduce.axes else n
            for i, n in enumerate(shape)
            if reduce.keep_dims or i not in reduce.axes
        )
    attrs = {"line": line, "names": tuple(inputs), "shape": shape, "reduces": reduces,
             "members": (("node", "Op"),) * members}  # fmt: skip
    return NodeSig(
        CLUSTER, "fused", attrs, tuple(a.shape for a in inputs.values()), tuple(types.values()),
        tuple(shapes), tuple(results),
    )  # fmt: skip


def check(sig: NodeSig, inputs: dict[str, Any], rtol: float = 1e-5, atol: float = 1e-6) -> None:
    assert cluster._when(sig) is True
    got = cluster.cluster(sig)(*inputs.values(), None)
    with np.errstate(all="ignore"):
        wanted = codegen.evaluate_cluster(xp, sig)(*inputs.values())
    if len(sig.out_dtypes) == 1:
        got, wanted = (got,), (wanted,)
    for a, b, dtype in zip(got, wanted, sig.out_dtypes, strict=True):
        assert a.dtype == dtype.np
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol
        )


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return np.asarray(RNG.normal(size=shape)).astype(dtype)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


@pytest.mark.parametrize(
    "shapes",
    [
        [(), ()], [(1,), (1,)], [(7,), ()], [(5, 1), (1, 6)], [(3, 4), (4,)], [(3, 4), (3, 1)],
        [(2, 3, 4), (3, 1)], [(2, 1, 4), (1, 3, 1)], [(2, 3, 4, 5), (3, 1, 5)],
        [(6, 7, 8, 9), (7, 1, 9)], [(40, 1000), (1000,)],
    ],
)  # fmt: skip
def test_broadcasting(shapes: list[tuple[int, ...]]) -> None:
    inputs = {f"x{i}": normal(*s) for i, s in enumerate(shapes)}
    check(sig_of(["max(x0 * x1 + x0, 0) - x1"], inputs, ["float32"]), inputs)


@settings(deadline=None)  # an example may have to be compiled
@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    data=st.data(),
)
def test_any_broadcast_and_any_end(shape: list[int], data: st.DataObject) -> None:
    os.environ["OPDOCK_JIT"] = "sync"  # a function-scoped fixture does not reach each example
    masks = [data.draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
             for _ in range(2)]  # fmt: skip
    inputs = {f"x{i}": normal(*(n if m else 1 for n, m in zip(shape, mask, strict=True)))
              for i, mask in enumerate(masks)}  # fmt: skip
    whole = np.broadcast_shapes(*(a.shape for a in inputs.values()))
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, len(whole) - 1)))))
    reduces = [codegen.Reduce("mean", axes, data.draw(st.booleans()))] if axes else []
    check(sig_of(["x0 * x1 + 2", "tanh(x0) - x1"], inputs, ["float32"] * 2, *reduces), inputs)


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("axes", [(0, 1), (1,), (0,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reductions(kind: str, axes: tuple[int, ...], dtype: Any) -> None:
    spread = 1e-5 if kind == "prod" else 1e-2
    x, y = (np.asarray(1 + normal(*n) * spread, dtype) for n in ((300, 1100), (1100,)))
    sig = sig_of(["x * y"], {"x": x, "y": y}, [np.dtype(dtype).name],
                 codegen.Reduce(kind, axes, False))  # fmt: skip
    assert cluster._when(sig) is True
    exact = getattr(np, kind)((x * y).astype(np.float64), axis=axes)
    rtol = 1e-12 if dtype is np.float64 else 2e-6
    np.testing.assert_allclose(cluster.cluster(sig)(x, y, None), exact, rtol=rtol)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_a_nan_is_the_extreme(kind: str) -> None:
    x = normal(4, 2000)
    x[1, 77] = np.nan
    check(sig_of(["x + 1"], {"x": x}, ["float32"], codegen.Reduce(kind, (1,), True)), {"x": x})


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32",
              "uint32", "int64", "uint64"],
)  # fmt: skip
def test_types(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    inputs = {n: np.asarray(RNG.integers(0, 100, 50)).astype(kind) for n in "xy"}
    narrow = dtype in ("float16", "bfloat16")
    check(sig_of(["where(x > y, x, y) * x - y"], inputs, [dtype]), inputs,
          rtol=2e-2 if narrow else 1e-6)  # fmt: skip
    check(sig_of(["cast(x, float32) / 3", "x != y"], inputs, ["float32", "bool"]), inputs)


def test_bools_and_casts() -> None:
    inputs = {"x": normal(100) * 100, "b": normal(100) > 0}
    texts = ["cast(x, int32)", "where(b, x, 0.0)", "cast(b, float32)", "isfinite(x)"]
    check(sig_of(texts, inputs, ["int32", "float32", "float32", "bool"]), inputs)


def test_infinities_and_nans() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1], np.float32)
    inputs = {"x": x, "y": x[::-1].copy()}
    texts = ["max(x, y)", "min(x, y)", "x < y", "sign(x)", "abs(x)", "isinf(x)", "exp(x)"]
    check(sig_of(texts, inputs, ["float32"] * 2 + ["bool"] + ["float32"] * 2 + ["bool", "float32"]),
          inputs)  # fmt: skip


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_the_sign_of_a_zero_is_zero(kind: str) -> None:
    x = np.array([-0.0, 0.0, -2, 3, np.nan, -np.inf], kind)
    found = cluster.cluster(sig_of(["sign(x)"], {"x": x}, [kind]))(x, None)
    np.testing.assert_array_equal(found, [0, 0, -1, 1, np.nan, -1])
    assert not np.signbit(found[:2]).any()


def test_a_strided_input_is_copied() -> None:
    x = normal(6, 8)
    sig = sig_of(["x * 2 + 1"], {"x": x.T}, ["float32"])
    check(sig, {"x": x.T})


def test_planned_buffers_are_filled() -> None:
    inputs = {"x": normal(100)}
    sig = sig_of(["x + 1", "x * 2"], inputs, ["float32", "float32"])
    first = np.empty(100, np.float32)
    got = cluster.cluster(sig)(inputs["x"], (first, None))
    assert got[0] is first
    np.testing.assert_allclose(first, inputs["x"] + 1)
    np.testing.assert_allclose(got[1], inputs["x"] * 2)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_threads_do_not_change_elementwise_results(count: int) -> None:
    inputs = {"x": normal(7, 50_021)}
    before = threads()
    try:
        use_threads(count)
        check(sig_of(["exp(x) * 2"], inputs, ["float32"]), inputs)
        for axes in ((0, 1), (0,)):
            reduce, texts = codegen.Reduce("sum", axes, False), ["x * x"]
            check(sig_of(texts, inputs, ["float32"], reduce), inputs)
    finally:
        use_threads(0)
    assert threads() == before


def test_what_does_not_vectorize_is_declined_with_the_reason() -> None:
    inputs = {"x": normal(10)}
    assert cluster._when(sig_of(["lgamma(x)"], inputs, ["float32"])) == (
        "'lgamma' of float32 does not vectorize"
    )


def test_a_session_fuses_and_agrees_with_one_that_does_not() -> None:
    x = normal(64, 128)
    with tf.Graph().as_default():
        feed = tf.placeholder(tf.float32, [None, 128])
        scaled = tf.nn.sigmoid(feed * 0.5 + 1.0) * tf.tanh(feed)
        total = tf.reduce_mean(tf.square(scaled), axis=1)
        with tf.Session() as session:
            rows = session.explain([scaled, total], {feed: x}).rows
            assert any(row.op == CLUSTER for row in rows)
            fused = session.run([scaled, total], {feed: x})
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = -1
        with tf.Session(config=config) as session:
            plain = session.run([scaled, total], {feed: x})
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- the cache on disk
SOURCE = "define void @cached(ptr %x) {\n  ret void\n}\n"
COMPILE = """
from opdock_cpu.jit import llvm
get = llvm.load_cached if {only} else llvm.compile_ir
print(get({source!r}, "cached") is not None)
"""


def in_a_process(folder: Path, only: bool) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMPILE.format(source=SOURCE, only=only)], text=True,
        stdout=subprocess.PIPE, env={**os.environ, "OPDOCK_CACHE": str(folder)},
    )  # fmt: skip


def test_a_second_process_finds_the_code(tmp_path: Path) -> None:
    assert in_a_process(tmp_path, True).communicate()[0].strip() == "False"
    assert in_a_process(tmp_path, False).communicate()[0].strip() == "True"
    assert in_a_process(tmp_path, True).communicate()[0].strip() == "True"


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_damaged_code_is_compiled_again(tmp_path: Path, damage: bytes | None) -> None:
    in_a_process(tmp_path, False).communicate()
    (file,) = (tmp_path / "cpu-code").iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    assert in_a_process(tmp_path, True).communicate()[0].strip() == "False"
    assert in_a_process(tmp_path, False).communicate()[0].strip() == "True"
    assert file.read_bytes() == whole


def test_processes_may_write_at_once(tmp_path: Path) -> None:
    running = [in_a_process(tmp_path, False) for _ in range(3)]
    assert [p.communicate()[0].strip() for p in running] == ["True"] * 3
    assert len(list((tmp_path / "cpu-code").iterdir())) == 1


def test_threads_may_compile_at_once() -> None:
    source = "define void @at_once(ptr %x) {\n  ret void\n}\n"
    found: list[Code] = []
    workers = [threading.Thread(target=lambda: found.append(compile_ir(source, "at_once")))
               for _ in range(4)]  # fmt: skip
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 4
    assert all(code.address for code in found)


def test_code_goes_with_the_last_who_holds_it() -> None:
    def source(name: str) -> str:
        return f"define void @{name}(ptr %x, i64 %n) {{\n  ret void\n}}\n"

    one = compiled.request(source)
    assert compiled.request(source) is one
    one.compile()
    code = weakref.ref(one._code)
    del one
    gc.collect()
    assert code() is None
    assert not compiled.request(source).failure


def test_a_result_larger_than_all_that_it_comes_from():
    inputs = {"a": np.array(1.7)}
    sig = sig_of(["exp(a * 2.0) + 1.0"], inputs, ["float64"])
    attrs = {**sig.attrs, "shape": (3, 2)}
    wide = NodeSig(CLUSTER, "fused", attrs, sig.in_shapes, sig.in_dtypes, ((3, 2),), sig.out_dtypes)
    got = codegen.evaluate_cluster(xp, wide)(*inputs.values())
    np.testing.assert_allclose(got, np.full((3, 2), np.exp(3.4) + 1), rtol=1e-14)
