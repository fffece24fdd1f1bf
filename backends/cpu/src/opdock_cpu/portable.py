"""Core's portable kernels on NumPy, for what a kernel of the backend does not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import NodeSig, mount
from opdock_cpu.namespace import namespace

__all__ = ["portable_into", "portable_kernel"]


def portable_kernel(sig: NodeSig) -> Callable[..., Any]:
    """The portable kernel of a node; LookupError when there is none that is bound."""
    for kernel in mount(namespace).for_op(sig.op):
        if kernel.bind is not None:
            return kernel.bind(sig)
    raise LookupError(f"no portable kernel of {sig.op}")


def portable_into(sig: NodeSig) -> Callable[..., Any]:
    """The same over (*inputs, out), whether or not that kernel takes a buffer; `out` may be None."""
    for kernel in mount(namespace).for_op(sig.op):
        if kernel.bind is not None:
            run = kernel.bind(sig)
            return run if kernel.out else lambda *args: run(*args[:-1])
    raise LookupError(f"no portable kernel of {sig.op}")
