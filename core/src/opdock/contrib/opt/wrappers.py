"""Optimizers around an optimizer: clipped variables, several tasks, gradients that came late."""

from __future__ import annotations

import logging
import types
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.registry import get
from opdock.graph.nodes.scopes import colocate_with, control_dependencies, name_scope
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import get_variable
from opdock.ops import clip, control, state, summary
from opdock.ops.composed.reduce_stats import count_nonzero
from opdock.ops.composed.variable_scatter import scatter_sub
from opdock.train.around import around_another
from opdock.train.optimizer import Optimizer
from opdock.train.training_util import get_global_step

_log = logging.getLogger("tensorflow")

__all__ = [
    "DropStaleGradientOptimizer", "MultitaskOptimizerWrapper", "VariableClippingOptimizer",
    "clip_gradients_by_global_norm",
]  # fmt: skip


@around_another
class VariableClippingOptimizer(Optimizer):
    """An optimizer after whose steps the norms of some variables are clipped.

    Args:
        opt: the optimizer that computes and applies gradients.
        vars_to_clip_dims: variable to the dimensions over which its norm is taken.
        max_norm: the largest norm that is left as it is.
        use_locking: whether concurrent updates of a variable exclude each other.
        colocate_clip_ops_with_vars: whether the norms are computed where the variables are.
        name: of the operations.
    """

    def __init__(
        self, opt: Any, vars_to_clip_dims: Mapping[Any, Sequence[int]], max_norm: Any,
        use_locking: bool = False, colocate_clip_ops_with_vars: bool = False,
        name: str = "VariableClipping",
    ) -> None:  # fmt: skip
        super().__init__(use_locking, name)
        self._opt = opt
        self._clip_dims = {var.op: list(dims) for var, dims in vars_to_clip_dims.items()}
        self._max_norm = max_norm
        self._colocate = colocate_clip_ops_with_vars

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Applies gradients as the optimizer within does, then clips."""
        pairs = list(grads_and_vars)
        with name_scope(name, self._name) as scope:
            updated = self._opt.apply_gradients(pairs, global_step=global_step)
            clipped = []
            with control_dependencies([updated]):
                for grad, var in pairs:
                    if grad is None or var.op not in self._clip_dims:
                        continue
                    with name_scope("clip_" + var.op.name):
                        clipped.append(self._clip(grad, var))
            return control.group(updated, *clipped, name=scope)

    def _clip(self, grad: Any, var: Any) -> Any:
        dims = self._clip_dims[var.op]
        if not isinstance(grad, IndexedSlices):
            return self._clip_dense(var, dims)
        if 0 in dims:
            _log.warning(
                "Clipping norm across dims %s for %s is inefficient when including sparse "
                "dimension 0.", dims, var.op.name,
            )  # fmt: skip
            return self._clip_dense(var, dims)
        with colocate_with(var.op):
            rows = get("GatherV2")(convert_to_tensor(var), grad.indices, 0)
        with self._where(var):
            excess = rows - clip.clip_by_norm(rows, self._max_norm, dims)
        with colocate_with(var.op):
            return scatter_sub(var, grad.indices, excess, use_locking=self._use_locking)

    def _clip_dense(self, var: Any, dims: Sequence[int]) -> Any:
        with self._where(var):
            value = var.read_value()
            excess = value - clip.clip_by_norm(value, self._max_norm, dims)
        with colocate_with(var.op):
            return state.assign_sub(var, excess, use_locking=self._use_locking)

    def _where(self, var: Any) -> Any:
        return colocate_with(var.op) if self._colocate else nullcontext()


class MultitaskOptimizerWrapper:
    """An optimizer that takes a gradient of zeros for one that is not there.

    Where a batch lacks a task, its part of the loss has zero gradients, which would make moments
    decay. Here such a variable and its slots stay as they are.

    Args:
        opt: an optimizer; its methods are wrapped.

    Raises:
        TypeError: it is none.
    """

    def __init__(self, opt: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise TypeError("Supplied optimizer must be an instance of tf.train.Optimizer")
        self._opt = opt
        for name in (
            "_apply_dense", "_resource_apply_dense", "_apply_sparse", "_resource_apply_sparse",
        ):  # fmt: skip
            setattr(opt, name, types.MethodType(_unless_zeros(getattr(opt, name)), opt))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._opt, name)


def _unless_zeros(apply: Any) -> Any:
    def wrapped(_: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
        def step() -> Any:
            with control_dependencies([apply(grad, *args, **kwargs)]):
                return control.no_op()

        return control.cond(_all_zeros(grad), control.no_op, step)

    return wrapped


def _all_zeros(grad: Any) -> Tensor:
    values = grad.values if isinstance(grad, IndexedSlices) else grad
    found: Tensor = get("Equal")(count_nonzero(values), convert_to_tensor(0, dtypes.int64))
    return found


def clip_gradients_by_global_norm(
    gradients_variables: Iterable[tuple[Any, Any]], clip_norm: Any = 20.0
) -> tuple[list[tuple[Any, Any]], Tensor]:
    """Clips gradients by their global norm, of which gradients of zeros are no part.

    Args:
        gradients_variables: pairs, as `compute_gradients` gives them.
        clip_norm: the largest norm that is left as it is.

    Returns:
        The pairs with clipped gradients, and the norm.
    """
    pairs = list(gradients_variables)
    gradients = [grad for grad, _ in pairs]
    counted = [None if g is None else _counted(g) for g in gradients]
    norm = clip.global_norm(counted)
    clipped, _ = clip.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return list(zip(clipped, [var for _, var in pairs], strict=True)), norm


def _counted(grad: Any) -> Tensor:
    """A gradient as far as the norm goes: a scalar zero in place of many."""
    values = grad.values if isinstance(grad, IndexedSlices) else grad
    nothing = get("Fill")([], convert_to_tensor(0, values.dtype))
    found: Tensor = control.cond(_all_zeros(grad), lambda: nothing, lambda: values)
    return found


@around_another
class DropStaleGradientOptimizer(Optimizer):
    """An optimizer that drops gradients during whose making too many steps were taken.

    Args:
        opt: the optimizer that computes and applies gradients.
        staleness: how many steps may have been taken.
        use_locking, name: see `Optimizer`.
    """

    def __init__(
        self, opt: Any, staleness: int, use_locking: bool = False, name: str = "DropStaleGradient"
    ) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._staleness = staleness
        self._local_step: Any = None

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """As of the optimizer within, once the global step has been read."""
        with colocate_with(loss.op):
            self._local_step = get_global_step() + 0
        with control_dependencies([self._local_step]):
            return super().compute_gradients(get("Identity")(loss), *args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """Applies gradients that are not too old; the result counts those that were dropped."""
        pairs = list(grads_and_vars)
        with colocate_with(global_step.op):
            dropped = get_variable(
                "stale_counter", [], initializer=zeros_initializer(), trainable=False
            )

        def accept() -> Any:
            applied = self._opt.apply_gradients(pairs, global_step=global_step, name=name)
            with control_dependencies([applied]):
                return get("Identity")(0.0)

        ready = [g if isinstance(g, Tensor) else g.op for g, _ in pairs if g is not None]
        with control_dependencies(ready), colocate_with(global_step.op):
            age = get("Reshape")(
                global_step - self._local_step, convert_to_tensor([], dtypes.int32)
            )
        counted = dropped.assign_add(
            control.cond(age <= self._staleness, accept, lambda: get("Identity")(1.0))
        )
        steps = get("Cast")(convert_to_tensor(global_step + 1), DstT=dtypes.float32)
        summary.scalar("Gradient staleness percentage", dropped / steps)
        return counted
