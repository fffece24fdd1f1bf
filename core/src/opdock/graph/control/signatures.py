"""Whether the functions of a branch or a loop take what the node hands them, and give its results.

Nodes that Python functions made fit their functions; those of a file need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from opdock.dtypes import DType
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.nodes.traits import Control

if TYPE_CHECKING:
    from opdock.graph.nodes.operation import Tensor
    from opdock.graph.nodes.registry import OpSpec

__all__ = ["check_functions"]


def check_functions(
    spec: OpSpec, name: str, inputs: Sequence[Tensor], attrs: dict[str, Any]
) -> None:
    """Checks the functions in a node's attributes against its types and inputs.

    Args:
        spec: the op type.
        name: the node's.
        inputs: its inputs.
        attrs: complete.

    Raises:
        ValueError: a function takes or gives other types, or a reference for a value, or is none.
    """
    control = spec.traits.control
    if control is Control.COND:
        for key in _functions(spec):
            _check(name, key, attrs[key], inputs[1:], attrs["Tin"], attrs["Tout"])
    elif control is Control.LOOP:
        _check(name, "cond", attrs["cond"], inputs, attrs["T"], None)
        _check(name, "body", attrs["body"], inputs, attrs["T"], attrs["T"])


def _functions(spec: OpSpec) -> list[str]:
    return [a.name for a in spec.definition.attrs.values() if a.type == "func"]


def _check(
    node: str, key: str, function: Any, inputs: Sequence[Tensor], taken: list[DType],
    given: list[DType] | None,
) -> None:  # fmt: skip
    """`given` is None for a condition, which gives one value of whatever type."""
    if not isinstance(function, FuncGraph):
        raise ValueError(f"Node '{node}': attr '{key}' names no function of the graph")
    takes, gives = ([t.dtype for t in part] for part in (function.inputs, function.outputs))
    if _names(takes) != _names(taken):
        raise ValueError(
            f"Node '{node}' hands ({', '.join(_names(taken))}) to function "
            f"'{function.func_name}', its {key}, which takes ({', '.join(_names(takes))})"
        )
    for dtype, tensor in zip(takes, inputs, strict=True):
        if dtype._is_ref_dtype and not tensor.dtype._is_ref_dtype:
            raise ValueError(
                f"Node '{node}' hands the value '{tensor.name}' to function "
                f"'{function.func_name}', its {key}, which takes a reference there"
            )
    if len(gives) != 1 if given is None else _names(gives) != _names(given):
        wanted = "one value" if given is None else f"({', '.join(_names(given))})"
        raise ValueError(
            f"Node '{node}' expects {wanted} of function '{function.func_name}', its {key}, "
            f"which gives ({', '.join(_names(gives))})"
        )


def _names(types: Iterable[DType]) -> list[str]:
    return [t.base_dtype.name for t in types]
