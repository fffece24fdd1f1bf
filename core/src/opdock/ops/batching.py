"""Batches across steps: what several steps compute at the same time is computed at once.

A batch is open for some time, or until it is full. One of the steps that are in it then gets all of
it, and the others get nothing; where they take out their part, they wait for that step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock import shapes
from opdock.graph.control.function_op import DefinedGraph
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import Cost, ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import unknown
from opdock.shapes import Shape

__all__ = ["nondifferentiable_batch_function"]

_OWN = 'container: string = "", shared_name: string = ""'
_LIMITS = "max_batch_size: int, batch_timeout_micros: int, max_enqueued_batches: int = 10, "

batch_op = define_op(
    "Batch", "in_tensors: T -> batched_tensors: T, batch_index: int64, id: int64",
    "num_batch_threads: int, max_batch_size: int, max_enqueued_batches: int = 10, "
    "batch_timeout_micros: int, allowed_batch_sizes: list(int) = [], grad_timeout_micros: int, "
    f'{_OWN}, batching_queue: string = "", T: list(type) >= 1',
)  # fmt: skip
unbatch_op = define_op(
    "Unbatch", "batched_tensor: T, batch_index: int64, id: int64 -> unbatched_tensor: T",
    f"timeout_micros: int, {_OWN}, T: type",
)  # fmt: skip
unbatch_grad_op = define_op(
    "UnbatchGrad",
    "original_input: T, batch_index: int64, grad: T, id: int64 -> batched_grad: T",
    f"{_OWN}, T: type",
).not_differentiable()
batch_function_op = define_op(
    "BatchFunction", "in_tensors: Tin, captured_tensors: Tcaptured -> out_tensors: Tout",
    f"f: func, num_batch_threads: int, {_LIMITS}allowed_batch_sizes: list(int) = [], {_OWN}, "
    'batching_queue: string = "", Tin: list(type) >= 1, Tcaptured: list(type) >= 0, '
    "Tout: list(type) >= 1",
).not_differentiable()  # fmt: skip
# In TF's definitions they have no state, but a step that is left out is missed by others.
for _op in (batch_op, unbatch_op, unbatch_grad_op):
    _op.declare(Traits(effect=True, blocks=True, cost=Cost.WAIT, fold=False, merge=False))
batch_function_op.declare(
    Traits(
        effect=True, blocks=True, cost=Cost.WAIT, fold=False, merge=False, foreign=True,
        captures=(("captured_tensors", "f"),),
    )
)  # fmt: skip


@batch_op.shape
def _batch_shape(sig: ShapeSig) -> list[Shape]:
    return [*map(_any_rows, sig.shapes), (None, 3), ()]


@unbatch_op.shape
def _unbatch_shape(sig: ShapeSig) -> Shape:
    return _any_rows(sig.shapes[0])


def _any_rows(shape: Shape) -> Shape:
    known = shapes.with_rank_at_least(shape, 1)
    return None if known is None else (None, *known[1:])


@unbatch_grad_op.shape
def _unbatch_grad_shape(sig: ShapeSig) -> Shape:
    grad = sig.shapes[2]
    return None if grad is None else (None,) * len(grad)


batch_function_op.shape(unknown)


@batch_op.gradient
def _batch_gradient(op: Operation, *grads: Any) -> list[Any]:
    *_, index, own = op.outputs
    return [
        None
        if grad is None
        else unbatch_op(
            grad, index, own, timeout_micros=op.attrs["grad_timeout_micros"],
            shared_name=f"batch_gradient_{op.name}_{i}",
        )
        for i, grad in enumerate(grads[: len(op.inputs)])
    ]  # fmt: skip


@unbatch_op.gradient
def _unbatch_gradient(op: Operation, grad: Tensor) -> list[Any]:
    batched, index, own = op.inputs
    name = f"unbatch_gradient_{op.name}"
    return [unbatch_grad_op(batched, index, grad, own, shared_name=name), None, None]


def nondifferentiable_batch_function(
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: Sequence[int] | None = None,
    max_enqueued_batches: int = 10,
    autograph: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for a function that is called once for what several steps want of it.

    Steps that run at the same time in different threads put their arguments together, along the
    first dimension; each gets the rows of the results that are its own.

    Args:
        num_batch_threads: how many batches may be computed at the same time.
        max_batch_size: how many rows a batch may have.
        batch_timeout_micros: how long a batch that is not full waits for more rows.
        allowed_batch_sizes: sizes to which batches are filled up, ascending, the last one being
            `max_batch_size`; None for any size.
        max_enqueued_batches: how many batches may wait until they are computed.
        autograph: must be left as it is where the function is a graph's; accepted as in TF.

    Returns:
        A decorator. The function takes tensors, whose first dimensions are equal, and gives a
        tensor or several. What is decorated gives a list of tensors, and has no gradient.

    Raises:
        ValueError: when the function is called: an argument is no tensor.
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        def decorated(*args: Any) -> Any:
            graph = get_default_graph()
            with graph.name_scope("batch") as name:
                check_arguments(args)
                body = _traced(fn, args, name.rstrip("/"))
                return batch_function_op(
                    list(args), [outer for outer, _ in body.captures],
                    num_batch_threads=num_batch_threads, max_batch_size=max_batch_size,
                    batch_timeout_micros=batch_timeout_micros,
                    allowed_batch_sizes=list(allowed_batch_sizes or ()),
                    max_enqueued_batches=max_enqueued_batches, shared_name=name, f=body,
                    Tout=[t.dtype.base_dtype for t in body.outputs],
                )  # fmt: skip

        return decorated

    return decorate


def check_arguments(args: Sequence[Any]) -> None:
    """Raises ValueError for an argument of a batched function that is no tensor."""
    for a in args:
        if not isinstance(a, Tensor):
            raise ValueError(
                "All arguments to functions decorated with `batch_function` are supposed to be "
                f"Tensors; found {a!r}"
            )


def _traced(fn: Callable[..., Any], args: Sequence[Tensor], name: str) -> DefinedGraph:
    """The function of the arguments, which have any number of rows."""
    body = DefinedGraph(f"{name.replace('/', '_')}_{getattr(fn, '__name__', 'function')}",
                        get_default_graph())  # fmt: skip
    with body.as_default():
        found = fn(*(body.add_input(a.dtype, _any_rows(a.raw_shape)) for a in args))
        results = list(found) if isinstance(found, (list, tuple)) else [found]
        body.outputs = [t if t._op.graph is body else body._adopt(t) for t in results]
    body.targets = [op for op in body.get_operations() if op.spec.stateful]
    return body
