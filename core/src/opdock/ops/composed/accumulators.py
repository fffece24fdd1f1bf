"""`tf.ConditionalAccumulator` and its kin, as programs use them."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops import accumulators as raw
from opdock.ops.cast import cast
from opdock.shapes import TensorShape

__all__ = [
    "ConditionalAccumulator", "ConditionalAccumulatorBase", "SparseConditionalAccumulator",
]  # fmt: skip


def _step(value: Any) -> Tensor:
    step: Tensor = cast(convert_to_tensor(value), dtypes.int64)
    return step


class ConditionalAccumulatorBase:
    """Gradients that are added up until somebody takes as many as he needs.

    Args:
        dtype: of the gradients.
        shape: of the gradients, as far as it is known.
        accumulator_ref: the handle.
    """

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = TensorShape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.rpartition("/")[2]
        self._is_resource = accumulator_ref.dtype is dtypes.resource

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The last part of the operation's name."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The type of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients there are, an int32 scalar."""
        op = raw.resource_num_accumulated_op if self._is_resource else raw.num_accumulated_op
        return op(self._accumulator_ref, name=name or f"{self._name}_NumAccumulated")  # type: ignore[no-any-return]

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Moves the accumulator to a step: gradients of earlier ones are dropped."""
        op = raw.resource_set_global_step_op if self._is_resource else raw.set_global_step_op
        return op(self._accumulator_ref, _step(new_global_step), name=name)  # type: ignore[no-any-return]


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Of tensors.

    Args:
        dtype: of the gradients.
        shape: of the gradients, as far as it is known.
        shared_name: by which others of the session share it.
        name: a name for the operation.
        reduction_type: "MEAN" or "SUM".

    Raises:
        ValueError: another type of reduction.
    """

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: str | None = None,
        name: str = "conditional_accumulator", reduction_type: str = "MEAN",
    ) -> None:  # fmt: skip
        handle = raw.resource_accumulator_op(
            dtype=dtype, shape=shape, shared_name=shared_name or "", name=name,
            reduction_type=reduction_type,
        )  # fmt: skip
        super().__init__(dtype, shape, handle)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """Adds a gradient that was computed for a step; it is dropped if that is over.

        Raises:
            ValueError: the shape does not fit.
            InvalidArgumentError: it does not when the graph runs.
        """
        grad = convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        return raw.resource_apply_gradient_op(  # type: ignore[no-any-return]
            self._accumulator_ref, _step(local_step), grad, name=name
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean, or the sum, of all gradients, once there are as many as are required.

        Raises:
            InvalidArgumentError: when run, if `num_required` is not positive.
        """
        out: Tensor = raw.resource_take_gradient_op(
            self._accumulator_ref, num_required, dtype=self._dtype, name=name
        )
        out.set_shape(self._shape)
        return out


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Of slices along the first dimension; each is divided by how often it came.

    Args:
        dtype: of the gradients.
        shape: of the dense gradients, as far as it is known.
        shared_name: by which others of the session share it.
        name: a name for the operation.
        reduction_type: "MEAN" or "SUM".

    Raises:
        ValueError: another type of reduction.
    """

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator", reduction_type: str = "MEAN",
    ) -> None:  # fmt: skip
        handle = raw.sparse_accumulator_op(
            dtype=dtype, shape=shape, shared_name=shared_name or "", name=name,
            reduction_type=reduction_type,
        )  # fmt: skip
        super().__init__(dtype, shape, handle)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """`apply_grad` of IndexedSlices."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:  # fmt: skip
        """Adds slices that were computed for a step; they are dropped if that is over.

        Args:
            grad_indices: their places along the first dimension, ascending.
            grad_values: the slices.
            grad_shape: the shape of the dense gradient.
            local_step: the step.
            name: a name for the operation.

        Raises:
            InvalidArgumentError: when run, if something does not fit.
        """
        shape = convert_to_tensor([] if grad_shape is None else grad_shape, dtype_hint=dtypes.int64)
        return raw.sparse_apply_gradient_op(  # type: ignore[no-any-return]
            self._accumulator_ref, _step(local_step),
            cast(convert_to_tensor(grad_indices), dtypes.int64),
            convert_to_tensor(grad_values, self._dtype), cast(shape, dtypes.int64),
            has_known_shape=grad_shape is not None, name=name,
        )  # fmt: skip

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Places, slices and dense shape of the mean, or the sum, once there is enough of it."""
        return raw.sparse_take_gradient_op(
            self._accumulator_ref, num_required, dtype=self._dtype, name=name
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad` as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
