"""Portable elementwise kernels against the oracle, over NumPy and over the bare standard."""

from __future__ import annotations

import array_api_compat.numpy as numpy_namespace
import array_api_strict
import numpy as np
import pytest

from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.kernels.expr.evaluation import evaluator
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.kernels.expr.lowering import lower
from opdock.kernels.expr.tree import functions_used, parse
from opdock.kernels.portable import elementwise, mount
from opdock.kernels.portable.elementwise import claims, lower_node
from opdock.kernels.select.signature import NodeSig
from opdock.testing.harness.claims import varied_attr
from opdock.testing.harness.oracle import expected_outputs, oracle_attrs, reference_value
from opdock.testing.harness.sample import samples_for
from opdock.testing.harness.tolerances import compare, tolerance_for

NARROW = {dtypes.float16, dtypes.bfloat16}
WITH_EXPR = [s.name for s in registry.all_ops() if s.expr is not None]
OTHERS = ["AddN", "AccumulateNV2", "Select", "ApproximateEqual", "Cross"]


def nodes(op, allowed):
    """Every sample of an op as (signature, arrays, expected first output)."""
    spec = registry.get(op)
    attr = varied_attr(spec)
    first = spec.definition.inputs[0]
    types = claims(spec).get(attr) if spec.expr is not None else None
    if types is None:
        types = {first.dtype} if first.dtype and not attr else {dtypes.float32, dtypes.int32}
    for dtype in sorted(types & allowed, key=lambda t: t.name):
        for sample in samples_for(op, dtype.np):
            attrs = {n: a.default for n, a in spec.definition.attrs.items() if a.has_default}
            attrs |= {k: _native(v) for k, v in sample.attrs.items()}
            arrays, in_types = [], []
            for arg, value in zip(spec.definition.inputs, sample.inputs, strict=True):
                kind = arg.dtype or (dtype if arg.type_attr == attr else attrs[arg.type_attr])
                attrs |= {arg.type_attr: kind} if arg.type_attr else {}
                values = value if isinstance(value, list) else [value]
                made = [np.asarray(v).astype(kind.np) for v in values]
                arrays.append(made if isinstance(value, list) else made[0])
                in_types += [kind] * len(made)
            outs = [a.dtype or attrs[a.type_attr] for a in spec.definition.outputs]
            if not set(outs) <= allowed:
                continue
            flat = [v for a in arrays for v in (a if isinstance(a, list) else [a])]
            want = expected_outputs(reference_value(op, oracle_attrs(attrs), arrays), outs)[0]
            # Shapes that are known let values be written over others.
            for shape in (None, want.shape):
                sig = NodeSig(op, op, attrs, [v.shape for v in flat], in_types, [shape], outs)
                yield sample.tag, sig, flat, want


def _native(value):
    return dtypes.as_dtype(value) if isinstance(value, np.dtype) else value


def run_all(op, namespace, allowed):
    """Checks every sample; returns how many there were."""
    # AddN has one of lists of tensors too, in a process that has made any.
    kernels = [k for k in mount(namespace).for_op(op) if {dtypes.variant} not in k.dtypes.values()]
    assert kernels, f"{op} has no portable kernel"
    count = 0
    for tag, sig, arrays, want in nodes(op, allowed):
        with np.errstate(all="ignore"):
            run, given = kernels[0].bind(sig), [namespace.asarray(a) for a in arrays]
            got = np.asarray(run(*given))
            kept = zip(given, arrays, strict=True)
            assert all(np.asarray(g).tobytes() == a.tobytes() for g, a in kept), f"{op} {tag}"
            where = f"{op} {sig.in_dtypes[0].name} {tag}"
            if kernels[0].out:
                check_place(run, given, got, where)
        assert got.dtype == want.dtype, where
        mismatch = compare(got, want, tolerance_for(want.dtype))
        assert mismatch is None, f"{where}: {mismatch.text}"
        count += 1
    return count


def check_place(run, given, wanted, where):
    """A planned buffer holds the result, though it be the memory of an input."""
    alike = [i for i, a in enumerate(given) if (a.shape, a.dtype) == (wanted.shape, wanted.dtype)]
    for shared in [None, *alike]:
        place = np.empty_like(wanted) if shared is None else given[shared].copy()
        inputs = [place if i == shared else a for i, a in enumerate(given)]
        assert run(*inputs, place) is place, where
        assert compare(place, wanted, tolerance_for(wanted.dtype)) is None, where


def test_what_writes_to_its_buffer():
    """Where functions take `out=`, and the last of an expression does."""
    made = {k.op: k.out for k in mount(numpy_namespace)}
    assert made["AddV2"] and made["Relu6"] and made["TanhGrad"] and not made["SelectV2"]
    assert made["RsqrtGrad"]  # where a gradient is zero, a number is written over its product
    assert not any(k.out for k in mount(array_api_strict))


@pytest.mark.parametrize("op", WITH_EXPR + OTHERS)
def test_on_numpy(op):
    assert run_all(op, numpy_namespace, dtypes.NUMBERS | {dtypes.bool})


@pytest.mark.parametrize("op", WITH_EXPR + OTHERS)
def test_on_nothing_but_the_standard(op):
    text = registry.get(op).expr
    if text and any(FUNCTIONS[f].needs for f in functions_used(parse(text))):
        pytest.skip("needs more than the standard, and says so")
    with array_api_strict.ArrayAPIStrictFlags(api_version="2023.12"):
        allowed = (dtypes.NUMBERS | {dtypes.bool}) - NARROW
        assert run_all(op, array_api_strict, allowed) or op == "BesselI0e"


@pytest.mark.parametrize("op", WITH_EXPR)
def test_every_claimed_type_can_be_lowered(op):
    spec = registry.get(op)
    for attr, types in claims(spec).items():
        assert types, f"{op} claims no type for {attr}"


def test_a_node_that_means_more_than_its_expression_is_not_lowered():
    sig = NodeSig(
        "Equal", "e", {"T": dtypes.float32, "incompatible_shape_error": False}, [(2,), (3,)],
        [dtypes.float32] * 2, [None], [dtypes.bool],
    )  # fmt: skip
    with pytest.raises(ValueError, match="do not broadcast"):
        lower_node(registry.get("Equal"), sig)


def test_a_namespace_without_the_function_gets_no_kernel():
    class Bare:
        """The standard's names only."""

        def __getattr__(self, name):
            if name == "nextafter":
                raise AttributeError(name)
            return getattr(numpy_namespace, name)

    bare = Bare()
    assert not mount(bare).for_op("NextAfter")
    assert mount(bare).for_op("Exp")


@pytest.mark.parametrize("text", ["where(y == 0, 0, x / y)", "1 + where(y == 0, 2, x * y) * x"])
@pytest.mark.parametrize("alike", [False, True])
def test_a_number_is_written_where_a_mask_says(text, alike):
    """Into what it takes the place of, which is never an input."""
    x, y = np.arange(6, dtype=np.float32), np.array([0, 1, 2, 0, 4, 5], np.float32)
    line = lower([parse(text)], dict.fromkeys("xy", dtypes.float32))
    run = evaluator(line, numpy_namespace, ["x", "y"], (6,), alike=alike, out=True)
    with np.errstate(all="ignore"):
        chosen = np.where(y == 0, 0, x / y) if "/" in text else 1 + np.where(y == 0, 2, x * y) * x
        for place in (None, np.empty(6, np.float32)):
            found = run(x, y, place)
            np.testing.assert_array_equal(found, chosen)
            assert place is None or found is place
    assert x.tolist() == list(range(6)) and y.tolist() == [0, 1, 2, 0, 4, 5]


@pytest.mark.parametrize("shape", [None, (3,)])
def test_a_result_is_memory_of_its_own(shape):
    """The memory plan gives an input's buffer to others once the kernel has run."""
    kind = dtypes.float32
    line = lower([parse("cast(x, D)")], {"x": kind}, {"D": kind}, [kind])
    x = np.arange(3, dtype=np.float32)
    found = evaluator(line, numpy_namespace, ["x"], shape)(x)
    np.testing.assert_array_equal(found, x)
    assert not np.shares_memory(found, x)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("real(x)", "complex64"), ("imag(x)", "complex128"), ("conj(x)", "float32"),
     ("real(conj(x))", "complex64")],
)  # fmt: skip
def test_a_part_of_an_argument_is_copied(text, kind):
    dtype = dtypes.as_dtype(kind)
    line = lower([parse(text)], {"x": dtype}, {}, [dtype.real_dtype])
    x = np.arange(3, dtype=kind)
    found = evaluator(line, numpy_namespace, ["x"], (3,))(x)
    np.testing.assert_array_equal(found, x.imag if text == "imag(x)" else x.real)
    assert not np.shares_memory(found, x)


def test_one_type_of_a_kind_stands_for_all():
    for op in WITH_EXPR:
        spec = registry.get(op)
        attr = next((a.type_attr for a in spec.definition.inputs if a.type_attr), None)
        if attr is None:
            continue
        allowed = spec.definition.attrs[attr].allowed or elementwise._SCALARS
        fits = {
            t for t in elementwise._SCALARS & frozenset(allowed)
            if elementwise._fits(spec, spec.definition, {attr: t})
        }  # fmt: skip
        assert claims(spec)[attr] == fits, op
