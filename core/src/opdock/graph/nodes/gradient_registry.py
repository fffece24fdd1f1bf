"""The gradient functions of op types: those of their blocks, and those that programs register."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from opdock.graph.nodes.registry import GradientFn, find

if TYPE_CHECKING:
    from opdock.graph.nodes.operation import Operation

_F = TypeVar("_F", bound=Callable[..., Any])
# Registered by programs; None for what they declare not differentiable.
PYTHON_GRADIENTS: dict[str, GradientFn | None] = {}
# What programs have put in the place of the gradients of ops' own blocks, for a while.
REPLACED: dict[str, GradientFn | None] = {}


def gradient_of(op: Operation) -> GradientFn | None:
    """The gradient function for a node, honouring `gradient_override_map`.

    Returns None for an op that is declared not differentiable.

    Raises:
        LookupError: the op has no gradient.
    """
    override = op.attrs.get("_gradient_op_type")
    if override is not None:
        if override not in PYTHON_GRADIENTS:
            raise LookupError(f"No gradient registered under the name '{override}'.")
        return PYTHON_GRADIENTS[override]
    spec = op.spec
    if spec.name in REPLACED:
        return REPLACED[spec.name]
    if not spec.is_differentiable or (
        spec.name in PYTHON_GRADIENTS and PYTHON_GRADIENTS[spec.name] is None
    ):
        return None
    fn = spec.gradient_fn or PYTHON_GRADIENTS.get(spec.name)
    if fn is None:
        raise LookupError(
            f"No gradient defined for operation '{op.name}' (op type: {spec.name}), created at "
            f"{op.user_line}"
        )
    return fn


def keeps_slices(fn: _F) -> _F:
    """Marks a gradient function that takes IndexedSlices as they are; others get them dense."""
    fn.keeps_slices = True  # type: ignore[attr-defined]
    return fn


class RegisterGradient:
    """Decorator that registers a gradient function under an op type or override name.

    Raises:
        KeyError: the name has a gradient already.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: GradientFn) -> GradientFn:
        """Registers `f` and returns it."""
        spec = find(self._op_type)
        taken = spec is not None and (spec.gradient_fn is not None or not spec.is_differentiable)
        if taken or self._op_type in PYTHON_GRADIENTS:
            raise KeyError(f"Registering two gradients with name '{self._op_type}'!")
        PYTHON_GRADIENTS[self._op_type] = f
        return f


def not_differentiable(op_type: str) -> None:
    """Declares an op type not differentiable (TF's `tf.NotDifferentiable`).

    The type need not be registered, now or ever.

    Raises:
        TypeError: `op_type` is no string.
        KeyError: it has a gradient.
    """
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    spec = find(op_type)
    if PYTHON_GRADIENTS.get(op_type) or (spec is not None and spec.gradient_fn is not None):
        raise KeyError(f"Registering two gradients with name '{op_type}'!")
    PYTHON_GRADIENTS[op_type] = None
