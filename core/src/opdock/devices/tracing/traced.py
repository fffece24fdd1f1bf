"""One kernel as one traced program: fewer things to compile and to start than its functions are."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from opdock.devices.segment import HeldVariable
from opdock.devices.tracing.deferred import deferring, is_deferring
from opdock.failures import failures
from opdock.kernels.select.arguments import flat_inputs
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.table import Kernel

__all__ = ["TracedKernel", "inputs_traced"]

_PROGRAMS: Final = 32
"""For how many values of its host inputs a kernel has programs: what has more of them is data."""
_HOST: Final = (np.ndarray, np.generic)


class TracedKernel:
    """A kernel that is traced for each set of shapes; what cannot be traced runs as it is.

    Args:
        xp: the namespace.
        call: the bound kernel. Random streams are nothing that a program can keep, so it draws
            none.
        compiled: makes a function of structures of arrays one that is traced when shapes are new.
        buffer: the class of the device's buffers.
        traced: the positions of host inputs that need not be known: one program serves all their
            values.
    """

    def __init__(
        self, xp: Any, call: Callable[..., Any], compiled: Callable[..., Any], buffer: type,
        traced: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        self._xp, self._call, self._compiled, self._buffer = xp, call, compiled, buffer
        self._traced_inputs = traced
        self._programs: dict[Any, Callable[..., Any]] = {}
        self._traceable = True
        self._gives_cell = False

    def __call__(self, *inputs: Any) -> Any:
        """The kernel's results, or its errors."""
        if not self._traceable or is_deferring():
            return self._call(*inputs)
        open_ = self._traced_inputs
        arrays = {
            i: x for i, x in enumerate(inputs) if isinstance(x, self._buffer) or i in open_
        }  # fmt: skip
        cells = {i: x for i, x in enumerate(inputs) if _is_variable(x)}
        rest = {i: x for i, x in enumerate(inputs) if i not in arrays and i not in cells}
        # Other state than variables would be changed by the trace, not by its runs.
        pure = all(isinstance(x, _HOST) and not x.dtype.hasobject for x in rest.values())
        ready = all(cell.initialized for cell in cells.values())
        if not (pure and ready and (arrays or cells)):
            return self._call(*inputs)
        try:
            program = self._program(rest, cells)
            with contextlib.ExitStack() as held:
                # In one order for all, so that two updates never wait for each other.
                for cell in sorted(cells.values(), key=id):
                    held.enter_context(cell.lock)
                out, fresh, failed = program(arrays, {i: c.read() for i, c in cells.items()})
                if failed is None or not bool(failed):
                    for i, value in fresh.items():
                        cells[i].write(value)
                    return next(iter(cells.values())) if self._gives_cell else out
        except failures(Exception) as e:
            if open_ and isinstance(e, NotImplementedError) and len(self._programs) < _PROGRAMS:
                self._traced_inputs = frozenset()  # the kernel has to know them after all
                return self(*inputs)
            # Either it cannot be traced, or its arguments are wrong, which it says itself.
            out = self._call(*inputs)
            self._traceable = False
            return out
        return self._call(*inputs)

    def _program(self, rest: dict[int, Any], cells: Any) -> Callable[..., Any]:
        """What computes the kernel with its host inputs as they are."""
        key = tuple((x.dtype.str, x.shape, x.tobytes()) for x in rest.values())
        found = self._programs.get(key)
        if found is None:
            if len(self._programs) >= _PROGRAMS:
                raise NotImplementedError("each value of its host inputs would be a program")
            found = self._compiled(functools.partial(self._traced, rest, cells))
            self._programs[key] = found
        return found

    def _traced(self, rest: dict[int, Any], cells: Any, arrays: Any, values: Any) -> Any:
        """The outputs, the new values of variables, and whether a check of values fails."""
        held = {i: HeldVariable(cells[i], x) for i, x in values.items()}
        every = rest | arrays | held
        with deferring() as checks:
            out = self._call(*(every[i] for i in range(len(every))))
        self._gives_cell = isinstance(out, HeldVariable)
        fresh = {i: cell.value for i, cell in held.items() if cell.value is not values[i]}
        failed = functools.reduce(self._xp.logical_or, checks) if checks else None
        return None if self._gives_cell else out, fresh, failed


def inputs_traced(kernel: Kernel, sig: NodeSig) -> frozenset[int]:
    """The positions of a node's inputs that its kernel wants on the host, or traced."""
    return flat_inputs(sig.op, kernel.traced, sig.attrs)


def _is_variable(x: Any) -> bool:
    return all(hasattr(x, name) for name in ("read", "write", "lock", "initialized"))
