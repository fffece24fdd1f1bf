"""Portable kernels of every elementwise op, made from the scalar expression in its definition."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.opdef import OpDef
from opdock.graph.nodes.registry import OpSpec
from opdock.kernels import kept
from opdock.kernels.array_api import put
from opdock.kernels.expr.evaluation import evaluator, writes_to, writes_where
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.kernels.expr.lowering import Line, lower
from opdock.kernels.expr.tree import Apply, Expr, Number, functions_used, parse
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel
from opdock.shapes import Shape

_SCALARS = dtypes.NUMBERS | {dtypes.bool_}
_VALUES = (bool, int, float, DType)


def elementwise_kernel(spec: OpSpec, xp: Any) -> Kernel | None:
    """A kernel over `xp` for an op that has a scalar expression; None if `xp` lacks a function."""
    needs = {n for f in functions_used(parse(spec.expr or "")) for n in FUNCTIONS[f].needs}
    if not all(hasattr(xp, n) for n in needs):
        return None
    bind = functools.partial(_bind, spec, xp)
    return Kernel(op=spec.name, bind=bind, dtypes=claims(spec), out=_takes_out(spec, xp))


def lower_node(spec: OpSpec, sig: NodeSig) -> Line:
    """The op's expression, typed for one node: what code generators fuse.

    Raises:
        ValueError: the op has no expression, it does not fit the node's types, or the node means
            more than its expression says.
    """
    if not sig.attrs.get("incompatible_shape_error", True):
        raise ValueError(f"{spec.name} gives one truth value for shapes that do not broadcast.")
    types = [t.base_dtype for t in sig.in_dtypes]
    return _lowered(spec, types, sig.out_dtypes[0].base_dtype, sig.attrs)


def _lowered(spec: OpSpec, types: Sequence[DType], result: DType, attrs: Mapping[str, Any]) -> Line:
    if spec.expr is None:
        raise ValueError(f"{spec.name} has no scalar expression.")
    inputs = dict(zip(_names(spec), types, strict=True))
    return lower([parse(spec.expr)], inputs, attrs, [result])


def _names(spec: OpSpec) -> list[str]:
    return [a.name for a in spec.definition.inputs]


def _takes_out(spec: OpSpec, xp: Any) -> bool:
    """Whether a planned buffer saves a pass: the last function writes to an array it is given."""
    root: Expr = parse(spec.expr or "")
    add, kind = FUNCTIONS["add"], dtypes.float32
    if isinstance(root, Apply) and root.function == "where" and isinstance(root.args[1], Number):
        if not writes_where(xp, kind):
            return False
        root = root.args[2]
    last = FUNCTIONS[root.function] if isinstance(root, Apply) else None
    if last is None or not last.plain:
        return False
    return writes_to(getattr(xp, add.array), xp, add.arity, kind, kind)


def _bind(spec: OpSpec, xp: Any, sig: NodeSig) -> Any:
    types = tuple(t.base_dtype for t in sig.in_dtypes)
    run = _call(spec, xp, types)
    if run is None:
        # What the expression may take from the node: many nodes share one function.
        attrs = tuple((k, v) for k, v in sig.attrs.items() if isinstance(v, _VALUES))
        shape = sig.out_shapes[0] if sig.out_shapes else None
        alike = shapes.is_fully_defined(shape) and all(s == shape for s in sig.in_shapes)
        run = _function(spec, xp, types, sig.out_dtypes[0].base_dtype, attrs, shape, alike)
    if sig.attrs.get("incompatible_shape_error", True):
        return run

    def compare(x: Any, y: Any, out: Any = None) -> Any:
        try:
            shapes.broadcast(tuple(x.shape), tuple(y.shape))
        except ValueError:
            apart = xp.asarray(spec.name == "NotEqual", dtype=xp.bool)
            return apart if out is None else put(xp, out, ..., apart)
        return run(x, y) if out is None else run(x, y, out)

    return compare


@kept.with_arrays(1024)
def _function(
    spec: OpSpec, xp: Any, types: tuple[DType, ...], result: DType,
    attrs: tuple[tuple[str, Any], ...], shape: Shape, alike: bool,
) -> Any:  # fmt: skip
    """The expression as Python code."""
    line = _lowered(spec, types, result, dict(attrs))
    return evaluator(line, xp, _names(spec), shape, alike=alike, out=_takes_out(spec, xp))


@functools.lru_cache(maxsize=4096)
def _call(spec: OpSpec, xp: Any, types: tuple[DType, ...]) -> Any:
    """The namespace's function where it is all that a node needs: a step is then one call of it."""
    root = parse(spec.expr or "")
    if not isinstance(root, Apply) or [str(a) for a in root.args] != _names(spec):
        return None
    function, operand = FUNCTIONS[root.function], types[-1]
    if operand not in function.plain or len(set(types)) > 1:
        return None
    run = getattr(xp, function.array)
    if not _takes_out(spec, xp):
        return run
    result = function.result_type(operand)
    if not writes_to(run, xp, function.arity, operand, result):
        return None
    # A ufunc takes its output behind its inputs, though NumPy 2.4 deprecates that for two.
    if (
        getattr(run, "nin", None) == function.arity
        and root.function not in ("max", "min")
        and writes_to(run, xp, function.arity, operand, result, behind=True)
    ):
        return run
    return _by_keyword(run, function.arity)


def _by_keyword(run: Any, arity: int) -> Any:
    if arity == 1:
        return lambda x, out=None: run(x, out=out)
    return lambda x, y, out=None: run(x, y, out=out)


@functools.cache
def claims(spec: OpSpec) -> Mapping[str, frozenset[DType]]:
    """The types, by attribute, that the op's expression admits."""
    definition = spec.definition
    inputs = [a.type_attr for a in definition.inputs if a.type_attr]
    kinds = {name: attr for name, attr in definition.attrs.items() if attr.type == "type"}
    found = {}
    for name, attr in kinds.items():
        allowed = _SCALARS if attr.allowed is None else _SCALARS & frozenset(attr.allowed)
        if inputs and name == inputs[0]:
            # One of a kind stands for all: functions tell kinds of numbers apart, not widths.
            one = {_kind(t): t for t in allowed}
            fits = {kind for kind, t in one.items() if _fits(spec, definition, {name: t})}
            allowed = frozenset(t for t in allowed if _kind(t) in fits)
        found[name] = allowed
    return found


def _kind(dtype: DType) -> tuple[bool, ...]:
    return dtype.is_bool, dtype.is_integer, dtype.is_unsigned, dtype.is_floating


def _fits(spec: OpSpec, definition: OpDef, types: Mapping[str, DType]) -> bool:
    """Whether the expression can be typed with these input types (whatever the result type)."""
    assert spec.expr is not None
    inputs = {}
    for arg in definition.inputs:
        dtype = arg.dtype or types.get(arg.type_attr)
        if dtype is None:
            return True
        inputs[arg.name] = dtype
    attrs: dict[str, Any] = {}
    for name, attr in definition.attrs.items():
        plain = attr.default if attr.has_default else 1
        attrs[name] = dtypes.float32 if attr.type == "type" else plain
    try:
        lower([parse(spec.expr)], inputs, {**attrs, **types})
    except ValueError as e:
        # A plain number takes the output's type, so it fits every type.
        return "of its own" in str(e)
    return True
