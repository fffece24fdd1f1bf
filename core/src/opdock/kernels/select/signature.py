"""`NodeSig`: what a kernel's `when` and `bind` see of one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opdock import errors
from opdock.dtypes import DType
from opdock.kernels.select.cells import Resources, UserFunction
from opdock.shapes import Shape


class NodeSig:
    """One node as kernels see it, without the graph around it.

    Attributes:
        op: the op type, e.g. "MatMul".
        name: the node's name in the graph.
        attrs: the attributes as native Python values, defaults filled in.
        in_names: the names of the nodes that the inputs come from.
        in_shapes: raw shapes of all inputs, lists flattened; unknown dimensions are None.
        in_dtypes: element types of all inputs.
        out_shapes: raw shapes of all outputs.
        out_dtypes: element types of all outputs.
        device: the open device the node is considered for, or None before placement.
        resources: what the session keeps between steps, when a program is prepared; else None.
    """

    __slots__ = (
        "_consts", "_functions", "attrs", "device", "in_dtypes", "in_names", "in_shapes", "name",
        "op", "out_dtypes", "out_shapes", "resources",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        name: str = "",
        attrs: Mapping[str, Any] | None = None,
        in_shapes: Sequence[Shape] = (),
        in_dtypes: Sequence[DType] = (),
        out_shapes: Sequence[Shape] = (),
        out_dtypes: Sequence[DType] = (),
        consts: Mapping[int, np.ndarray[Any, Any]] | None = None,
        device: Any = None,
        resources: Resources | None = None,
        in_names: Sequence[str] = (),
        functions: Callable[[Any], UserFunction] | None = None,
    ) -> None:
        self.op = op
        self.name = name
        self.attrs: Mapping[str, Any] = {} if attrs is None else attrs
        self.in_names = in_names
        self.in_shapes = in_shapes
        self.in_dtypes = in_dtypes
        self.out_shapes = out_shapes
        self.out_dtypes = out_dtypes
        self._consts = consts
        self.device = device
        self.resources = resources
        self._functions = functions

    def function(self, attr: str) -> UserFunction:
        """The function that an attribute names, to be called when the program runs, or later.

        Raises:
            InternalError: no program is being prepared.
        """
        return self._called(self.attrs[attr], attr)

    def _called(self, function: Any, attr: str) -> UserFunction:
        if self._functions is None:
            raise errors.InternalError(
                None, None, f"Op {self.op}: the function '{attr}' belongs to no session"
            )
        return self._functions(function)

    def functions(self, attr: str) -> list[UserFunction]:
        """The functions that an attribute lists; see `function`."""
        return [self._called(f, attr) for f in self.attrs[attr]]

    def const(self, index: int) -> np.ndarray[Any, Any] | None:
        """The value of input `index` when it is known before the program runs, else None.

        The input is passed in the call all the same.
        """
        return None if self._consts is None else self._consts.get(index)

    def __repr__(self) -> str:
        types = ", ".join(t.name for t in self.in_dtypes)
        return f"<NodeSig {self.op} {self.name!r} ({types})>"
