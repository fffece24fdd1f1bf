"""`Editor`: a GraphDef that is being changed, with what uses what kept up to date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from opdock import errors
from opdock.graph.nodes import registry
from opdock.graph.serial.attr_proto import encode_attr
from opdock.graph.serial.import_arguments import parse_input
from opdock.io import protos
from opdock.io.tensor_proto import make_ndarray, make_tensor_proto

__all__ = [
    "Editor", "check_edges", "constant_value", "copied", "node_name", "set_value",
    "tensor_text",
]  # fmt: skip


def node_name(text: str) -> str:
    """The node of an input such as "x", "x:1" or "^x"."""
    return parse_input(text)[0]


def tensor_text(name: str, index: int) -> str:
    """An output of a node as inputs name it; index -1 is the node as a control input."""
    return f"^{name}" if index < 0 else name if index == 0 else f"{name}:{index}"


def copied(node: Any, name: str) -> Any:
    """A copy of a NodeDef under a name."""
    made = protos.NodeDef()
    made.CopyFrom(node)
    made.name = name
    return made


def check_edges(graph_def: Any) -> None:
    """Checks that names are unique and that inputs exist.

    Raises:
        InvalidArgumentError: two nodes have one name, or an input is not written as one.
        InternalError: an input refers to no node; the message names all of them.
    """
    counts = Counter(node.name for node in graph_def.node)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise errors.InvalidArgumentError(None, None, f"Two nodes have the name '{twice[0]}'.")
    try:
        lost = [
            f"'{text}' of node '{node.name}'"
            for node in graph_def.node
            for text in node.input
            if node_name(text) not in counts
        ]
    except ValueError as e:
        raise errors.InvalidArgumentError(None, None, str(e)) from None
    if lost:
        raise errors.InternalError(
            None, None,
            f"Invalid graph with inputs referring to nonexistent nodes: {', '.join(lost)}",
        )  # fmt: skip


class Editor:
    """A copy of a GraphDef whose nodes can be replaced.

    Args:
        graph_def: is not changed.
        keep: names of nodes, or of their outputs, that `sweep` leaves.

    Attributes:
        nodes: NodeDefs by name, in order; change edges by the editor's methods alone.
        keep: the names of the nodes that stay.
    """

    def __init__(self, graph_def: Any, keep: Iterable[str] = ()) -> None:
        check_edges(graph_def)
        self._source = graph_def
        self.keep = {node_name(text) for text in keep}
        self.nodes: dict[str, Any] = {}
        self._users: dict[str, Counter[str]] = {node.name: Counter() for node in graph_def.node}
        for node in graph_def.node:
            self._add(copied(node, node.name))

    def __iter__(self) -> Iterator[Any]:
        """The nodes as they are when it begins."""
        return iter(list(self.nodes.values()))

    def result(self) -> Any:
        """The GraphDef as it is now, with the library and the versions that it had."""
        out = protos.GraphDef()
        for part in ("library", "versions"):
            if self._source.HasField(part):
                getattr(out, part).CopyFrom(getattr(self._source, part))
        out.node.extend(self.nodes.values())
        return out

    # ------------------------------------------------------------ looking
    def source(self, text: str) -> Any:
        """The node of an input."""
        return self.nodes[node_name(text)]

    def users(self, name: str) -> list[Any]:
        """The nodes that take outputs of a node or wait for it."""
        return [self.nodes[user] for user in self._users[name]]

    def is_shared(self, name: str) -> bool:
        """Whether more than one input is made of a node, or somebody wants its results."""
        return name in self.keep or self._users[name].total() > 1

    def unique(self, name: str) -> str:
        """The name, with a number if it is taken."""
        found, number = name, 0
        while found in self.nodes:
            number += 1
            found = f"{name}_{number}"
        return found

    # ------------------------------------------------------------ changing
    def put(self, node: Any) -> Any:
        """Adds a node, or puts it in the place of the one that has its name."""
        old = self.nodes.get(node.name)
        if old is not None:
            self._forget(old)
        self._add(node)
        return node

    def make(self, op: str, name: str, inputs: Iterable[str] = (), **attrs: Any) -> Any:
        """Puts a node of an op; see `put`.

        Args:
            op: the op type.
            name: the node's name.
            inputs: as NodeDefs name them.
            attrs: native values.
        """
        node = protos.NodeDef(op=op, name=name, input=inputs)
        spec = registry.find(op)
        for key, value in attrs.items():
            kind = None if spec is None else spec.attr_type(key)
            node.attr[key].CopyFrom(encode_attr(value, kind))
        return self.put(node)

    def constant(self, name: str, value: Any, dtype: Any = None) -> str:
        """Puts a constant; see `put`.

        Returns:
            The name.
        """
        node = protos.NodeDef(op="Const", name=name)
        set_value(node, value, dtype)
        return str(self.put(node).name)

    def set_inputs(self, node: Any, inputs: Iterable[str]) -> None:
        """Gives a node other inputs."""
        self._forget(node)
        node.input[:] = list(inputs)
        self._note(node)

    def redirect(self, old: str, new: str) -> None:
        """Gives another output to all that take one; "^x" stands for waiting for a node."""
        name, index = parse_input(old)
        for user in self.users(name):
            changed = [new if parse_input(text) == (name, index) else text for text in user.input]
            self.set_inputs(user, dict.fromkeys(changed) if index < 0 else changed)

    def remove(self, name: str) -> None:
        """Takes a node away; whoever took it must have been redirected, or be redirected then."""
        self._forget(self.nodes.pop(name))

    def sweep(self, names: Iterable[str]) -> None:
        """Takes away nodes that nobody uses, with those that only they used."""
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self.nodes and not self._users[name] and name not in self.keep:
                inputs = [node_name(text) for text in self.nodes[name].input]
                self.remove(name)
                waiting += inputs

    def _add(self, node: Any) -> None:
        self.nodes[node.name] = node
        self._users.setdefault(node.name, Counter())
        self._note(node)

    def _note(self, node: Any) -> None:
        for text in node.input:
            self._users.setdefault(node_name(text), Counter())[node.name] += 1

    def _forget(self, node: Any) -> None:
        for text in node.input:
            users = self._users[node_name(text)]
            users[node.name] -= 1
            if not users[node.name]:
                del users[node.name]


def set_value(node: Any, value: Any, dtype: Any = None) -> None:
    """Gives a constant a value."""
    node.attr["value"].tensor.CopyFrom(make_tensor_proto(value, dtype=dtype))
    node.attr["dtype"].type = node.attr["value"].tensor.dtype


def constant_value(node: Any) -> np.ndarray[Any, Any]:
    """The value of a constant.

    Raises:
        InvalidArgumentError: it has none, or it cannot be decoded.
    """
    for name in ("dtype", "value"):
        if name not in node.attr:
            raise errors.InvalidArgumentError(
                None, None, f"No '{name}' attribute for Const node {node.name}"
            )
    try:
        value: np.ndarray[Any, Any] = make_ndarray(node.attr["value"].tensor)
    except (ValueError, TypeError) as e:
        raise errors.InvalidArgumentError(
            None, None, f"Decoding Tensor failed for node {node.name}: {e}"
        ) from None
    return value
