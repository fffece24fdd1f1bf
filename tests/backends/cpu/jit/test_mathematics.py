"""Generated mathematical functions against the C library in extended precision."""

from __future__ import annotations

import ctypes
import math
import platform
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import opdock as tf
from opdock.plugin import codegen
from opdock_cpu.jit import llvm, numpy_codes, render, trigonometry
from opdock_cpu.jit.llvm import compile_ir
from opdock_cpu.jit.mathematics import ANGLES, BINARY, DEFINED, EXP_NORMAL, defined, definition
from tests.backends.cpu.looped import compiled_for

ULPS = 2.0
KNOWN = [
    *(
        (f, k)
        for f in sorted(DEFINED.keys() - BINARY)
        for k in ("float", "double")
        if defined(f, k)
    ),
    *((f, "float") for f in sorted(ANGLES)),
]
"""Functions of one argument, each with the types that it computes in."""
LOOP = """
define void @{name}(ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %p = getelementptr {kind}, ptr %x, i64 %i
  %v = load {kind}, ptr %p
  %r = call {kind} @od_{function}_{kind}({kind} %v)
  %q = getelementptr {kind}, ptr %y, i64 %i
  store {kind} %r, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""


def generated(function: str, kind: str, x: np.ndarray) -> np.ndarray:
    name = f"test_{function}_{kind}"
    source = definition(function, kind) + LOOP.format(name=name, kind=kind, function=function)
    code = compile_ir(source, name)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(code.address)
    y = np.empty_like(x)
    run(x.ctypes.data, y.ctypes.data, x.size)
    return y


def values(dtype: type) -> np.ndarray:
    rng = np.random.default_rng(7)
    info = np.finfo(dtype)
    spread = [rng.normal(0, s, 20_000) for s in (1e-30, 1e-3, 1, 30, 300)]
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny]
    edges += list(rng.uniform(-1, 1, 20_000)) + list(1 + rng.uniform(-1, 1, 2000) * 1e-3)
    edges += [info.smallest_subnormal, 88.72, 88.73, -87.3, -103.97, -104.1, 709.78, 709.79, -745.2]
    with np.errstate(over="ignore"):
        return np.concatenate([*spread, np.exp(rng.uniform(-80, 80, 20_000)), edges]).astype(dtype)


def exactly(function: str, x: np.ndarray) -> np.ndarray:
    """The values in more digits than the type has; C's or SciPy's own, where NumPy has none."""
    if function == "erf":
        return np.array([math.erf(v) for v in x.tolist()], np.longdouble)
    name = function.replace("asin", "arcsin").replace("acos", "arccos").replace("atan", "arctan")
    if hasattr(np, name):
        return getattr(np, name)(x.astype(np.longdouble))
    return getattr(special, function)(x.astype(np.float64)).astype(np.longdouble)


@pytest.mark.parametrize(("function", "kind"), KNOWN)
def test_error_is_within_two_units_in_the_last_place(function: str, kind: str) -> None:
    check(function, kind)


@pytest.fixture
def unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for a processor that multiplies and adds in two steps."""
    from llvmlite import binding

    llvm._machine()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(cpu="x86-64-v2", features="", opt=3, jit=True)
    monkeypatch.setattr(llvm, "_machine", lambda: (machine, "x86-64-v2"))
    monkeypatch.setattr(llvm, "_identity", lambda: "code for x86-64-v2")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the name is one of x86-64")
@pytest.mark.parametrize(("function", "kind"), KNOWN)
def test_a_processor_may_lack_fused_products(function: str, kind: str, unfused: None) -> None:
    """The same error; and C's function is not called for one number after the other."""
    check(function, kind)
    source = definition(function, kind) + LOOP.format(name="f", kind=kind, function=function)
    assert re.search(rb"\0fmaf?\0", llvm._emit(source)) is None
    fused = source.replace("llvm.fmuladd", "llvm.fma")
    assert fused == source or re.search(rb"\0fmaf?\0", llvm._emit(fused))


def multiples() -> np.ndarray:
    """Numbers next to multiples of quarters of a turn, of every size."""
    rng = np.random.default_rng(8)
    quarters = np.arange(1, 20_000) * (np.pi / 2)
    size = 2.0 ** rng.uniform(20, 127, 20_000)
    near = np.concatenate([quarters, np.rint(size / (np.pi / 2)) * (np.pi / 2)]).astype(np.float32)
    return np.concatenate([near, np.nextafter(near, np.float32(0)), -near])


def check(function: str, kind: str) -> None:
    """That a function's values are within two units in the last place."""
    x = values(np.float32 if kind == "float" else np.float64)
    if function in ANGLES:
        x = np.concatenate([x, multiples()])
    if function.endswith("_near"):
        x = x[np.abs(x) < trigonometry.NEAR]
    y = generated(function, kind, x)
    with np.errstate(all="ignore"):
        exact = exactly(function.removesuffix("_near"), x)
        rounded = exact.astype(x.dtype)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(y[~finite], rounded[~finite])
    unit = np.spacing(np.abs(rounded[finite])).astype(np.longdouble)
    error = np.abs(y[finite].astype(np.longdouble) - exact[finite]) / unit
    worst = int(np.argmax(error))
    assert error[worst] <= ULPS, f"{function}({x[finite][worst]}) is {y[finite][worst]}"


@pytest.mark.parametrize("kind", ["float", "double"])
def test_an_exponential_beside_a_number_need_not_be_tiny(kind: str) -> None:
    """The same bits where it is a normal number, at most the least of these below, and infinity."""
    x = values(np.float32 if kind == "float" else np.float64)
    whole, normal = generated("exp", kind, x), generated(EXP_NORMAL, kind, x)
    least = np.finfo(x.dtype).tiny
    seen = (whole >= 2 * least) & (whole <= np.finfo(x.dtype).max / 2)
    np.testing.assert_array_equal(normal[seen], whole[seen])
    assert (normal[whole < 2 * least] <= 2 * least).all()
    np.testing.assert_array_equal(np.isnan(normal), np.isnan(x))
    with np.errstate(over="ignore"):
        rest = [1 / (1 + of[~seen]) for of in (normal, whole)]
    np.testing.assert_allclose(*rest, rtol=0, atol=least)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("1 / (1 + exp(-x))", EXP_NORMAL),
        ("log(2 + exp(x)) - exp(x)", "exp"),
        ("exp(x)", "exp"),
        ("exp(x) + y", "exp"),
        ("exp(x) * 3", "exp"),
        ("1e-30 + exp(x)", "exp"),
        ("1 - exp(x)", EXP_NORMAL),
    ],
)
def test_exponentials_are_as_small_as_somebody_sees(expression: str, wanted: str) -> None:
    types = {"x": tf.float32, "y": tf.float32}
    line = codegen.lower([codegen.parse(expression)], types)
    assert wanted in {name for name, _ in render.needs(line)} - {"log"}
    assert len({name for name, _ in render.needs(line)} - {"log"}) == 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86-64")
@pytest.mark.parametrize(
    ("processor", "register"), [("nehalem", "xmm"), ("haswell", "ymm"), ("skylake-avx512", "zmm")]
)
@pytest.mark.parametrize(("function", "kind"), KNOWN)
def test_vectors_are_as_wide_as_a_processors(
    function: str, kind: str, processor: str, register: str
) -> None:
    """Products of whole vectors, and no call for one number after the other."""
    loop = LOOP.replace(") {{", ') "prefer-vector-width"="512" {{')
    text = definition(function, kind) + loop.format(name="f", kind=kind, function=function)
    code = compiled_for(processor, text)
    assert re.search(rf"\tv?(mul|fn?m(add|sub)\d+)p[sd]\t.*%{register}", code)
    assert "\tcall" not in code


PAIRS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, -2e9 - 1,
         1e-45, -1e-42, 2.0**24 + 2, 1 - 2.0**-24, 1 + 2.0**-23]  # fmt: skip


@pytest.mark.parametrize(("op", "exactly"), [("atan2", np.arctan2), ("pow", np.power)])
def test_functions_of_two_arguments(
    monkeypatch: pytest.MonkeyPatch, op: str, exactly: Callable[..., Any]
) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr(numpy_codes, "wide", lambda function: False)
    monkeypatch.setattr(numpy_codes, "chosen", lambda function: True)
    rng = np.random.default_rng(3)
    y = np.concatenate([np.repeat(PAIRS, len(PAIRS)), rng.normal(0, 9, 40_000)])
    x = np.concatenate([np.tile(PAIRS, len(PAIRS)), rng.normal(0, 9, 40_000)])
    y[-9999:] = np.abs(y[-9999:])
    x, y = x.astype(np.float32), y.astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        held = [tf.placeholder(tf.float32, [len(x)]) for _ in range(2)]
        found = session.run(getattr(tf, op)(*held), dict(zip(held, (y, x), strict=True)))
    with np.errstate(all="ignore"):
        exact = exactly(y.astype(np.longdouble), x.astype(np.longdouble))
        rounded = exact.astype(np.float32)
    known = ~np.isnan(rounded)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(rounded[known]))
    known &= np.isfinite(rounded)
    np.testing.assert_array_equal(np.isinf(found), np.isinf(rounded))
    unit = np.spacing(np.abs(rounded[known])).astype(np.longdouble)
    assert (np.abs(found[known].astype(np.longdouble) - exact[known]) / unit).max() <= ULPS
