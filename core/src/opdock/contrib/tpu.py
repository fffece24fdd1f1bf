"""`tf.contrib.tpu` where there is no TPU: what programs name on their way to other devices.

`TPUEstimator`, its configurations and its specs are the library tensorflow-estimator's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from opdock import dtypes, errors
from opdock.graph.variables.variable_scope import VariableScope, variable_scope
from opdock.losses import Reduction
from opdock.ops.cast import cast
from opdock.train.around import around_another
from opdock.train.optimizer import Optimizer

__all__ = ["CrossShardOptimizer", "bfloat16_scope", "cross_replica_sum"]


def cross_replica_sum(x: Any, group_assignment: Any = None, name: str | None = None) -> NoReturn:
    """Raises UnimplementedError: it adds over the cores of a TPU, and there is none.

    Raises:
        UnimplementedError: always; in TF the op has kernels for TPUs alone.
    """
    raise errors.UnimplementedError(
        None, None,
        f"CrossReplicaSum of {x} adds over the cores of a TPU, and there is none: use the "
        "optimizer without CrossShardOptimizer where use_tpu is False",
    )  # fmt: skip


@around_another
class CrossShardOptimizer(Optimizer):
    """An optimizer that adds gradients over the cores of a TPU before it applies them.

    Args:
        opt: the optimizer that computes and applies gradients.
        reduction: "weighted_sum" or "weighted_mean", how losses of cores become one.
        name: see `Optimizer`.
        group_assignment: which cores belong together.

    Raises:
        ValueError: the reduction is another one.
    """

    def __init__(
        self, opt: Any, reduction: str = Reduction.MEAN, name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:  # fmt: skip
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            raise ValueError(f"Unsupported reduction: {reduction}.")
        super().__init__(False, name)
        self._opt = opt
        self._group_assignment = group_assignment

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """Applies gradients that are added over all cores.

        Raises:
            UnimplementedError: there is a gradient to add.
        """
        pairs = [
            (grad if grad is None else cross_replica_sum(grad, self._group_assignment), var)
            for grad, var in grads_and_vars
        ]
        return self._opt.apply_gradients(pairs, global_step, name)


@contextmanager
def bfloat16_scope() -> Iterator[VariableScope]:
    """A variable scope in which variables asked for as bfloat16 are kept as float32 and cast."""

    def getter(get: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs["dtype"] != dtypes.bfloat16:
            return get(*args, **kwargs)
        return cast(get(*args, **{**kwargs, "dtype": dtypes.float32}), dtypes.bfloat16)

    with variable_scope("", custom_getter=getter) as scope:
        yield scope
