"""Nodes and values as plugins see them: to be read, not written; `GraphView` has the verbs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from opdock.compiler.ir.block import Node, Value
from opdock.compiler.ir.state import has_effect
from opdock.dtypes import DType
from opdock.shapes import Shape

__all__ = ["NodeView", "ValueView"]


class NodeView:
    """One node of a program that is being compiled.

    Two views of one node are equal. A view shows the node as it is now, not as it was.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def name(self) -> str:
        """The node's name. Nodes that core's passes made may have the name of another."""
        return self._node.name

    @property
    def op(self) -> str:
        """The op type, e.g. "MatMul"; "_Feed" for what the caller or an outer node passes in."""
        return self._node.op

    @property
    def attrs(self) -> Mapping[str, Any]:
        """The attributes as native Python values, defaults filled in."""
        return MappingProxyType(self._node.attrs)

    @property
    def inputs(self) -> tuple[ValueView, ...]:
        """The values that it takes, lists flattened."""
        return tuple(ValueView(v) for v in self._node.inputs)

    @property
    def outputs(self) -> tuple[ValueView, ...]:
        """The values that it makes."""
        return tuple(ValueView(v) for v in self._node.values())

    @property
    def controls(self) -> tuple[NodeView, ...]:
        """The nodes that it waits for, beside those that make its inputs."""
        return tuple(NodeView(n) for n in self._node.control)

    @property
    def in_dtypes(self) -> tuple[DType, ...]:
        """Element types of the inputs; a reference counts as what it refers to."""
        return tuple(v.dtype.base_dtype for v in self._node.inputs)

    @property
    def in_shapes(self) -> tuple[Shape, ...]:
        """Static shapes of the inputs: None, or a tuple with None for unknown dimensions."""
        return tuple(v.shape for v in self._node.inputs)

    @property
    def out_dtypes(self) -> tuple[DType, ...]:
        """Element types of the outputs; a reference counts as what it refers to."""
        return tuple(d.base_dtype for d in self._node.out_dtypes)

    @property
    def out_shapes(self) -> tuple[Shape, ...]:
        """Static shapes of the outputs."""
        return tuple(self._node.out_shapes)

    @property
    def requested(self) -> str:
        """The device that the user asked for, or empty; in a body also where its data is."""
        return self._node.requested

    @property
    def colocation(self) -> tuple[str, ...]:
        """Names of nodes with which it must share a device."""
        return tuple(g.removeprefix("loc:@") for g in self._node.attrs.get("_class") or ())

    @property
    def line(self) -> str:
        """The user's line that made the op, "train.py:12", or empty."""
        return self._node.origin.user_line if self._node.origin is not None else ""

    @property
    def device(self) -> str:
        """The full name of the device on which it was placed; empty before placement."""
        return "" if self._node.target is None else self._node.target.name

    @property
    def backend(self) -> str:
        """The name of that device's backend; empty before placement."""
        return "" if self._node.target is None else self._node.target.backend

    @property
    def how(self) -> str:
        """How the device runs it, a rung as of `Candidate`; empty before placement."""
        return self._node.how

    @property
    def kernel(self) -> str:
        """Where the chosen kernel's code lives; empty before placement, and without a kernel."""
        return "" if self._node.kernel is None else self._node.kernel.qualname

    @property
    def members(self) -> tuple[NodeView, ...]:
        """The nodes that it stands for, if it was made by fusion."""
        fused = self._node.fused
        return () if fused is None else tuple(NodeView(n) for n in fused.members)

    @property
    def stateful(self) -> bool:
        """Whether it reads or changes state, so that two equal ones may differ."""
        return self._node.stateful

    @property
    def has_effect(self) -> bool:
        """Whether a run without it is another run, even if nobody uses its results."""
        return has_effect(self._node)

    @property
    def stays(self) -> bool:
        """Whether all turns of a loop get the same array of it; of a body's "_Feed" alone."""
        return bool(self._node.spec is None and self._node.attrs.get("stays"))

    def const(self) -> np.ndarray[Any, Any] | None:
        """The value of a Const node, which is not to be changed; None for any other."""
        return self._node.const()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeView) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"<node {self.name} ({self.op})>"


class ValueView:
    """One output of a node: a value that others take."""

    __slots__ = ("_value",)

    def __init__(self, value: Value) -> None:
        self._value = value

    @property
    def node(self) -> NodeView:
        """The node that makes it."""
        return NodeView(self._value.node)

    @property
    def index(self) -> int:
        """Its place among the node's outputs."""
        return self._value.index

    @property
    def name(self) -> str:
        """TensorFlow's name for it, "add:0"."""
        return f"{self._value.node.name}:{self._value.index}"

    @property
    def dtype(self) -> DType:
        """The element type; that of a variable itself is a reference, or resource."""
        return self._value.dtype

    @property
    def shape(self) -> Shape:
        """The static shape: None, or a tuple with None for unknown dimensions."""
        return self._value.shape

    def const(self) -> np.ndarray[Any, Any] | None:
        """The value where it is a Const node's, which is not to be changed; else None."""
        return self._value.node.const()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueView) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"<value {self.name} of {self._value.node.op}>"
