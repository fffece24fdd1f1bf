"""How Keras wraps functions: the little that a graph needs of AutoGraph and `tf.function`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from opdock.ops.composed.function import function as graph_function

__all__ = [
    "control_status_ctx", "execute_fn_for_device", "function", "list_pluggable_devices",
    "tf_convert",
]  # fmt: skip

_F = TypeVar("_F", bound=Callable[..., Any])


def control_status_ctx() -> contextlib.AbstractContextManager[None]:
    """Where AutoGraph stands in this code: nowhere, as Keras' Python is not rewritten."""
    return contextlib.nullcontext()


def tf_convert(
    f: _F, ctx: Any, convert_by_default: bool = True, user_requested: bool = False
) -> _F:
    """The function as it is: its Python runs while the graph is built, and is not rewritten."""
    return f


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    jit_compile: bool | None = None, reduce_retracing: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """`tf.function` with today's arguments, of which the others are about how it is compiled.

    Keras has its functions written for graphs, and is not rewritten.
    """
    return graph_function(func, input_signature, autograph=False)


def execute_fn_for_device(
    device_branch_fns: dict[str, Callable[[], Any]], default_fn: Callable[[], Any],
    name: str = "execute_fn",
) -> Any:  # fmt: skip
    """What `default_fn` makes: every device has the ops of the general form."""
    return default_fn()


def list_pluggable_devices() -> list[Any]:
    """None: what plugins bring here compiles segments by itself, and does not ask Keras to."""
    return []
