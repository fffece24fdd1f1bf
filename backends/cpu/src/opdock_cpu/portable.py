"""Core's portable kernels on NumPy, for what a kernel of the backend does not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.plugin import NodeSig, mount
from opdock_cpu.namespace import namespace

__all__ = ["plainly", "portable_kernel"]


def portable_kernel(sig: NodeSig, *, out: bool = False) -> Callable[..., Any]:
    """The portable kernel of a node.

    Args:
        sig: the node.
        out: whether it is to take a trailing buffer for the result, or None.

    Raises:
        LookupError: there is none that is bound.
    """
    for kernel in mount(namespace).for_op(sig.op):
        if kernel.bind is not None:
            run = kernel.bind(sig)
            return run if kernel.out or not out else plainly(run)
    raise LookupError(f"no portable kernel of {sig.op}")


def plainly(run: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy kernel under the convention of those that take a buffer."""

    def call(*args: Any) -> Any:
        *inputs, out = args
        found: Any = run(*inputs)
        if out is None:
            return found
        target: Any = out
        np.copyto(target, found)
        return target

    return call
