"""`tf.case`: the first of several functions whose predicate holds."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.ops.control import cond
from opdock.ops.registry import get

__all__ = ["case", "case_by"]


@extensible
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default`.

    Args:
        pred_fn_pairs: pairs of a scalar bool tensor and a function, or a dict of them.
        default: used when no predicate holds; without it the last function is.
        exclusive: fail when more than one predicate holds.
        strict: keep a list of one tensor as a list.
        name: the name scope.

    Raises:
        TypeError, ValueError: the pairs are malformed.
    """
    return case_by(cond, pred_fn_pairs, default, exclusive, name, strict=strict)


def case_by(
    cond_fn: Callable[..., Any], pred_fn_pairs: Any, default: Any, exclusive: bool,
    name: str | None, allow_python_preds: bool = False, **cond_kwargs: Any,
) -> Any:  # fmt: skip
    """`tf.case`, made of another function's conditions.

    Args:
        cond_fn: makes a condition as `tf.cond` does, of `true_fn` and `false_fn`.
        pred_fn_pairs: see `case`.
        default: see `case`.
        exclusive: see `case`.
        name: the name scope.
        allow_python_preds: whether predicates may be Python's booleans.
        **cond_kwargs: what else `cond_fn` is called with.

    Raises:
        TypeError, ValueError: the pairs are malformed.
    """
    pairs = _pairs(pred_fn_pairs, allow_python_preds)
    predicates, functions = [p for p, _ in pairs], [fn for _, fn in pairs]
    with name_scope(name, "case", [predicates]):
        tests = list(predicates)
        if default is None:
            default = _last_resort(tests, functions)
            del tests[-1], functions[-1]
        chosen: Callable[[], Any] = default
        for test, fn in reversed(list(zip(tests, functions, strict=True))):
            chosen = functools.partial(cond_fn, test, true_fn=fn, false_fn=chosen, **cond_kwargs)
        checks = [_at_most(tests, 1, "Input error: exclusive=True")] if exclusive and tests else []
        with control_dependencies(checks):
            return chosen()


def _pairs(pred_fn_pairs: Any, python_too: bool) -> list[Any]:
    """Predicates with their functions, checked."""
    if not isinstance(pred_fn_pairs, (list, tuple, dict)):
        raise TypeError("fns must be a list, tuple, or dict")
    if isinstance(pred_fn_pairs, OrderedDict):
        pred_fn_pairs = list(pred_fn_pairs.items())
    elif isinstance(pred_fn_pairs, dict):
        pred_fn_pairs = sorted(pred_fn_pairs.items(), key=lambda pair: pair[0].name)
    if not pred_fn_pairs:
        raise ValueError("Must have at least one predicate and function")
    pairs = []
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in pred_fn_pairs must be a 2-tuple, got {pair!r}")
        pred, fn = pair
        pred = convert_to_tensor(pred) if hasattr(pred, "_gradient_source") else pred
        known = python_too and isinstance(pred, bool)
        if not known and not isinstance(pred, Tensor):
            kinds = "a Tensor or a Python bool" if python_too else "a Tensor"
            raise TypeError(f"pred must be {kinds}, got: {pred}")
        if not known and pred.dtype.base_dtype is not dtypes.bool_:
            raise TypeError(f"pred must be Tensor of type bool: {pred.name}")
        if not callable(fn):
            raise TypeError(f"fn for pred {getattr(pred, 'name', pred)} must be callable.")
        pairs.append((pred, fn))
    return pairs


def _last_resort(predicates: list[Tensor], functions: list[Callable[[], Any]]) -> Any:
    """The last function, which fails where no predicate holds."""

    def last() -> Any:
        message = "Input error: None of conditions evaluated as True:"
        data = [convert_to_tensor(message), get("Pack")(predicates, axis=0, name="preds_c")]
        with control_dependencies([get("Assert")(predicates[-1], data)]):
            return functions[-1]()

    predicates, functions = list(predicates), list(functions)
    return last


def _at_most(predicates: list[Tensor], count: int, message: str) -> Operation:
    """An operation that fails where more than some predicates hold."""
    holding = get("Pack")(predicates, axis=0, name="preds_c")
    total = get("Sum")(get("Cast")(holding, DstT=dtypes.int32), [0], name="num_true_conds")
    names = ", ".join(p.name for p in predicates)
    text = f"{message}: more than {count} conditions ({names}) evaluated as True:"
    data = [convert_to_tensor(text), holding]
    done: Operation = get("Assert")(get("LessEqual")(total, count), data)
    return done
