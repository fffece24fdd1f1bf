"""A plugin with one op, an identity whose kernel raises whatever it is told, on every backend."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from opdock.plugin import (
    DeviceAttributes,
    KernelTable,
    OpSpec,
    Traits,
    define_op,
    hookimpl,
    register,
    unregister,
)
from opdock.plugins.manager import get_manager

blast_op = define_op("explosive>Blast", "x: float -> y: float")
blast_op.declare(Traits(fold=False))
blast_op.shape(lambda sig: sig.shapes[0])
blast_op.gradient(lambda op, grad: blast_op(grad))

table = KernelTable()


class Fuse:
    """What the kernel does: raises `error`, if there is one, at the call after `calls` others."""

    error: BaseException | None = None
    calls: int = 0


fuse = Fuse()


@table.kernel("explosive>Blast")
def blast(ctx: Any, x: Any) -> Any:
    """A copy, or an explosion."""
    if fuse.error is not None:
        fuse.calls -= 1
        if fuse.calls < 0:
            raise fuse.error
    return ctx.device.upload(np.array(ctx.device.download(x)))


@contextmanager
def lit(error: BaseException, calls: int = 0) -> Iterator[None]:
    """Within it the kernel raises."""
    fuse.error, fuse.calls = error, calls
    try:
        yield
    finally:
        fuse.error = None


@hookimpl
def opdock_ops() -> Iterator[OpSpec]:
    yield blast_op


@hookimpl
def opdock_kernels(backend: str, device: DeviceAttributes) -> Iterator[KernelTable]:
    yield table


def install() -> None:
    """Registers the plugin; devices take kernels when they are opened, so they are opened anew."""
    get_manager().close()
    register(sys.modules[__name__], "explosive")


def uninstall() -> None:
    """Forgets it, and its kernels."""
    unregister("explosive")
    get_manager().close()
