"""`Session.use_kernel`: a kernel that the user gives to a running session."""

from __future__ import annotations

from collections.abc import Callable

from opdock.compiler.place.experience import Swap
from opdock.kernels.select.table import Kernel
from opdock.runtime.engine import Engine
from opdock.runtime.inspect.walk import found_device

__all__ = ["swap"]


def swap(engine: Engine, kernel: Kernel, node: str, device: str) -> Callable[[], None]:
    """See `Session.use_kernel`.

    Raises:
        TypeError: it is no kernel.
        InvalidArgumentError: there is no such device.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be an opdock.plugin.Kernel, got {kernel!r}")
    wish = Swap(kernel, node, found_device(engine, device).name if device else "")
    engine.experience.swaps.insert(0, wish)
    engine.experience.changed()

    def undo() -> None:
        """Takes the kernel back; a second call does nothing."""
        if wish in engine.experience.swaps:
            engine.experience.swaps.remove(wish)
            engine.experience.changed()

    return undo
