"""`tf.contrib.batching`: functions that are called once for what several steps want of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock.graph.nodes.graph import get_default_graph
from opdock.ops.batching import batch_op, check_arguments, unbatch_op
from opdock.ops.batching import nondifferentiable_batch_function as batch_function_v1

__all__ = ["batch_function", "batch_function_v1"]

_MINUTE: Final = 60_000_000


def batch_function(
    num_batch_threads: int,
    max_batch_size: int,
    batch_timeout_micros: int,
    allowed_batch_sizes: Sequence[int] | None = None,
    grad_timeout_micros: int = _MINUTE,
    unbatch_timeout_micros: int = _MINUTE,
    max_enqueued_batches: int = 10,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator for a function whose operations run once for several steps, and have gradients.

    Unlike with `batch_function_v1`, the function's operations are those of the graph: one of the
    steps that meet computes them for all, the others wait for their rows.

    Args:
        num_batch_threads: how many batches may be made at the same time.
        max_batch_size: how many rows a batch may have.
        batch_timeout_micros: how long a batch that is not full waits for more rows.
        allowed_batch_sizes: sizes to which batches are filled up; None for any size.
        grad_timeout_micros: how long a step waits for its part of the gradient.
        unbatch_timeout_micros: how long a step waits for its part of the results.
        max_enqueued_batches: how many batches may wait.

    Returns:
        A decorator. What is decorated takes tensors and gives a tensor, or a list of several.

    Raises:
        ValueError: when the function is called: an argument is no tensor.
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        def decorated(*args: Any) -> Any:
            graph = get_default_graph()
            with graph.name_scope("batch") as name:
                check_arguments(args)
                *batched, index, own = batch_op(
                    list(args), num_batch_threads=num_batch_threads,
                    max_batch_size=max_batch_size, batch_timeout_micros=batch_timeout_micros,
                    max_enqueued_batches=max_enqueued_batches,
                    allowed_batch_sizes=list(allowed_batch_sizes or ()),
                    grad_timeout_micros=grad_timeout_micros, shared_name=name,
                )  # fmt: skip
                batched = batched[0] if isinstance(batched[0], list) else batched
                found = fn(*batched)
                outputs = found if isinstance(found, (list, tuple)) else [found]
                with graph.name_scope("unbatch") as inner:
                    rows = [
                        unbatch_op(
                            t, index, own, timeout_micros=unbatch_timeout_micros,
                            shared_name=f"{inner}/{t.name}",
                        )
                        for t in outputs
                    ]  # fmt: skip
            return rows if isinstance(found, (list, tuple)) else rows[0]

        return decorated

    return decorate
