"""The C renderer: what it writes, and that a C compiler computes what the arrays compute."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import opdock as tf
from opdock.kernels.expr.evaluation import evaluator
from opdock.kernels.expr.lowering import lower
from opdock.kernels.expr.render_c import Dialect, can_render, elementwise_source, helpers, render
from opdock.kernels.expr.render_c_ops import elementwise_claims, update_line, updates
from opdock.kernels.expr.tree import parse

COMPILER = shutil.which("cc") or shutil.which("gcc")
PLAIN = Dialect(
    name="C11",
    types={
        "bool": "uint8_t", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t",
        "uint16": "uint16_t", "int32": "int32_t", "uint32": "uint32_t", "int64": "int64_t",
        "uint64": "uint64_t", "float16": "uint16_t", "bfloat16": "uint16_t", "float32": "float",
        "float64": "double",
    },
    kernel="void", pointer="", function="static ", index="item", single="f",
    prelude="""
#include <math.h>
#include <stdint.h>
#include <string.h>
static _Thread_local int64_t item;
static uint32_t od_float_bits(float v) { uint32_t b; memcpy(&b, &v, 4); return b; }
static float od_bits_float(uint32_t b) { float v; memcpy(&v, &b, 4); return v; }
""",
)  # fmt: skip


def line_of(text, result=None, **inputs):
    out = result or next(iter(inputs.values()))
    return lower([parse(text)], inputs, {}, [out])


def test_statements_follow_the_line():
    line = line_of("max(x, 0)", x=tf.float32)
    rendered = render(line, PLAIN, {"x": "p[i]"})
    assert rendered.statements[0] == "float v0 = p[i];"
    assert rendered.results == (f"v{line.results[0]}",)
    assert "v0 != v0" in rendered.statements[-1]  # NaN wins


def test_single_precision_has_its_own_functions():
    assert "expf(" in render(line_of("exp(x)", x=tf.float32), PLAIN, {"x": "a"}).statements[-1]
    assert "exp(" in render(line_of("exp(x)", x=tf.float64), PLAIN, {"x": "a"}).statements[-1]


def test_numbers():
    assert PLAIN.number(tf.float32, 0.5) == "0.5f"
    assert PLAIN.number(tf.float32, -1) == "(-1.0f)"
    assert PLAIN.number(tf.float64, float("-inf")) == "(-(double)INFINITY)"
    assert PLAIN.number(tf.uint64, 2**64 - 1) == "(uint64_t)18446744073709551615UL"
    assert PLAIN.number(tf.int64, -(2**63)) == "(int64_t)(-9223372036854775807L - 1)"
    assert PLAIN.number(tf.bool, True) == "1"
    with pytest.raises(ValueError, match="not a int32"):
        PLAIN.number(tf.int32, 0.5)


def test_what_has_no_spelling():
    line = line_of("digamma(x)", x=tf.float32)
    assert not can_render(line)
    with pytest.raises(ValueError, match="'digamma' has no spelling in C11"):
        render(line, PLAIN, {"x": "a"})
    with pytest.raises(ValueError, match="complex64 has no spelling"):
        render(line_of("x + x", x=tf.complex64), PLAIN, {"x": "a"})


def test_only_the_helpers_that_are_called():
    assert "od_div" not in helpers(PLAIN, "x + y")
    assert "od_div_int32" in helpers(PLAIN, "od_div_int32(x, y, flag)")
    assert "od_div_int64" not in helpers(PLAIN, "od_div_int32(x, y, flag)")


def test_broadcast_indices():
    line = line_of("x + y", x=tf.float32, y=tf.float32)
    inputs = [("x", tf.float32), ("y", tf.float32)]
    patterns = [(True, True), (False, True)]
    source = elementwise_source("k", line, PLAIN, inputs, [tf.float32], patterns)
    assert "x0[i]" in source and "x1[i1]" in source and "int64_t n1" in source
    scalar = elementwise_source("k", line, PLAIN, inputs, [tf.float32], [(True,), (False,)])
    assert "x1[0]" in scalar and "rest" not in scalar


def test_every_claim_can_be_rendered_and_every_update():
    claims = elementwise_claims()
    assert {"AddV2", "Relu", "Tanh", "FloorMod", "Cast"} <= set(claims)
    assert "Digamma" not in claims and "Complex" not in claims
    assert claims["NextAfter"]["T"] == {tf.float32, tf.float64}
    for op in updates():
        assert can_render(update_line(op, tf.float32, _flags(op)))


def _flags(op):
    from opdock.kernels.expr.render_c_ops import update_of

    return update_of(op).flags


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc, gcc)")
@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("where(x > y, x * y, x - y) + 1", "float32"),
        ("x % y", "float64"),
        ("fmod(x, y)", "float32"),
        ("x // y", "int32"),
        ("x % y", "int8"),
        ("fmod(x, y)", "int64"),
        ("x / y", "uint8"),
        ("x << y", "int16"),
        ("x >> y", "int8"),
        ("sign(x) + abs(y)", "int32"),
        ("max(x, y) * 3", "uint16"),
        ("x * y + 0.5", "bfloat16"),
        ("sign(x) * sqrt(abs(y))", "float64"),
    ],
)
def test_compiled_values(tmp_path, text, dtype):
    kind = tf.as_dtype(dtype)
    line = line_of(text, x=kind, y=kind)
    inputs = [("x", kind), ("y", kind)]
    source = elementwise_source("k", line, PLAIN, inputs, [kind], [(True,), (True,)])
    source += f"void run({_parameters(source)}) {{ for (item = 0; item < n; ++item) k("
    source += f"x0, x1, y0, {'flag, ' if line.may_raise else ''}n); }}\n"
    (tmp_path / "k.c").write_text(source)
    library = tmp_path / "k.so"
    subprocess.run(
        [COMPILER, "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-o", library,
         tmp_path / "k.c", "-lm"], check=True,
    )  # fmt: skip
    x, y = _values(kind)
    out, flag = np.zeros_like(x), ctypes.c_int(0)
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in (x, y, out)]
    if line.may_raise:
        pointers.append(ctypes.byref(flag))
    ctypes.CDLL(str(library)).run(*pointers, ctypes.c_int64(x.size))
    import array_api_compat.numpy as xp

    with np.errstate(all="ignore"):
        want = evaluator(line, xp, ["x", "y"])(x, y)
    assert flag.value == 0
    np.testing.assert_allclose(out.astype(np.float64), np.asarray(want, np.float64), rtol=1e-6)


def _parameters(source):
    return source[source.index("void k(") + 7 : source.index(") {\n  int64_t i =")]


def _values(kind):
    rng = np.random.default_rng(0)
    if kind.is_integer:
        low = 0 if kind.is_unsigned else -20
        x = rng.integers(low, 90, 64).astype(kind.as_numpy_dtype)
        y = rng.integers(1, 20, 64).astype(kind.as_numpy_dtype)
        if not kind.is_unsigned:
            y[::3] *= -1
            x[0], y[0] = kind.min, -1  # the quotient that does not fit
        return x, y
    return (rng.normal(size=64).astype(kind.as_numpy_dtype) for _ in range(2))
