"""Core's portable kernels on NumPy, for what a kernel of the backend does not take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.plugin import NodeSig, mount
from opdock_cpu.namespace import namespace

__all__ = ["portable_into", "portable_kernel"]


def portable_kernel(sig: NodeSig) -> Callable[..., Any]:
    """The portable kernel of a node; LookupError when there is none that is bound."""
    return _bound(sig)[0]


def portable_into(sig: NodeSig) -> Callable[..., Any]:
    """The same over (*inputs, out), whether that kernel takes a buffer or not; it may be None."""
    run, takes_buffer = _bound(sig)
    return run if takes_buffer else lambda *args: run(*args[:-1])


def _bound(sig: NodeSig) -> tuple[Callable[..., Any], bool]:
    for kernel in mount(namespace).for_op(sig.op):
        if kernel.bind is not None:
            return kernel.bind(sig), kernel.out
    raise LookupError(f"no portable kernel of {sig.op}")
