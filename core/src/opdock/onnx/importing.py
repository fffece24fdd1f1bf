"""From an ONNX model to a graph."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from opdock import errors
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Tensor
from opdock.onnx.library import NoRuleError, array_of, check_version, dtype_of, library, missing
from opdock.ops.support.nn_util import emit

__all__ = ["Imported", "Importer", "Node", "from_onnx", "imports"]

Results = Tensor | Sequence[Tensor]
Rule = Callable[["Importer", "Node"], Results]

_RULES: Final[dict[str, Rule]] = {}
FAMILIES: Final = ("arithmetic", "layers", "shapes")
_MOST_NODES: Final = 1_000_000


def imports(*ops: str) -> Callable[[Rule], Rule]:
    """Registers the rule of ONNX's op types."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


class Imported(NamedTuple):
    """A graph made of a model.

    Attributes:
        graph_def: the `GraphDef`.
        inputs: the model's inputs, and the tensor of each.
        outputs: the model's outputs, and the tensor of each.
    """

    graph_def: Any
    inputs: dict[str, str]
    outputs: dict[str, str]


class Node(NamedTuple):
    """A node of a model.

    Attributes:
        op: ONNX's op type.
        inputs: its inputs; None for one that is left out.
        attrs: its attributes.
        outputs: how many results it has.
        version: the version of ONNX's ops.
    """

    op: str
    inputs: list[Tensor | None]
    attrs: dict[str, Any]
    outputs: int
    version: int

    def tensor(self, index: int) -> Tensor:
        """An input.

        Raises:
            NoRuleError: it is left out.
        """
        found = self.optional(index)
        if found is None:
            raise NoRuleError(f"it has no input {index}")
        return found

    def optional(self, index: int) -> Tensor | None:
        """An input, or None."""
        return self.inputs[index] if index < len(self.inputs) else None

    def known(self, index: int, what: str, default: Any = None) -> Any:
        """The value of an input; the default if it is left out.

        Raises:
            NoRuleError: it is not known while the model is read.
        """
        tensor = self.optional(index)
        if tensor is None:
            return default
        value = constant_value(tensor)
        if value is None:
            raise NoRuleError(f"its {what} is no constant")
        return value

    def rank(self, index: int = 0) -> int:
        """The rank of an input.

        Raises:
            NoRuleError: it is not known.
        """
        rank = self.tensor(index).get_shape().ndims
        if rank is None:
            raise NoRuleError("the rank of its input is not known")
        return int(rank)


class Importer:
    """What rules may ask for while a graph is made."""

    @staticmethod
    def emit(op: str, *inputs: Any, **attrs: Any) -> Any:
        """Adds a node."""
        return emit(op, *inputs, **attrs)

    @staticmethod
    def constant(value: Any, dtype: Any = None) -> Tensor:
        """Adds a constant."""
        return constant(value, dtype)


def from_onnx(model: Any) -> Imported:
    """A graph that computes what an ONNX model does, its weights as constants.

    Args:
        model: a `ModelProto`.

    Raises:
        InvalidArgumentError: the model is not sound: a tensor is shorter than it says, a node takes
            what nothing gives, or the version of its ops is not one that is read.
        UnimplementedError: nodes cannot be translated, which it lists; or onnx is not installed.
    """
    for family in FAMILIES:
        importlib.import_module(f"opdock.onnx.from_{family}")
    version, source = check_version(model), model.graph
    if len(source.node) > _MOST_NODES:
        raise _invalid(f"it has {len(source.node)} nodes")
    for name in _names(source):
        if not isinstance(name, str):
            raise _invalid(f"the name {name!r} is no text")
    with Graph().as_default() as graph:
        reader = _Reader(graph, version, {_scope(info.name) for info in source.output})
        for tensor in source.initializer:
            reader.initializer(tensor)
        inputs = {
            info.name: reader.input(info) for info in source.input if info.name not in reader.values
        }
        refused = [found for node in source.node if (found := reader.node(node)) is not None]
        if refused:
            raise missing("a graph", refused)
        outputs = {info.name: reader.output(info.name) for info in source.output}
        return Imported(graph.as_graph_def(), inputs, outputs)


def _invalid(message: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"ONNX model: {message}")


class _Reader:
    """A model's values as they become tensors.

    Args:
        graph: where they are made.
        version: the version of ONNX's ops.
        outputs: names that the model's outputs are to have.
    """

    def __init__(self, graph: Graph, version: int, outputs: set[str]) -> None:
        self.graph, self.version, self._outputs = graph, version, outputs
        self.values: dict[str, Tensor] = {}
        self._onnx = library()

    def initializer(self, tensor: Any) -> None:
        """A constant of the model."""
        try:
            self.values[tensor.name] = constant(array_of(tensor), name=_scope(tensor.name))
        except NoRuleError as e:
            raise _invalid(f"tensor '{tensor.name}': {e}") from None

    def input(self, info: Any) -> str:
        """A placeholder for an input of the model; the name of its tensor."""
        kind = info.type.tensor_type
        if not info.type.HasField("tensor_type"):
            raise _invalid(f"input '{info.name}' is no tensor")
        try:
            dtype = dtype_of(kind.elem_type)
        except NoRuleError as e:
            raise _invalid(f"input '{info.name}': {e}") from None
        shape = None
        if kind.HasField("shape"):
            shape = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        made = emit("Placeholder", dtype=dtype, shape=shape, name=_scope(info.name))
        self.values[info.name] = made
        return str(made.name)

    def output(self, name: str) -> str:
        """An output of the model, under its own name; the name of its tensor."""
        wanted = _scope(name)
        tensor = self._value(name, "the model")
        if tensor.op.name != wanted:
            tensor = emit("Identity", tensor, name=wanted)
        return str(tensor.name)

    def _value(self, name: str, user: str) -> Tensor:
        if name not in self.values:
            raise _invalid(f"{user} takes '{name}', which nothing before it gives")
        return self.values[name]

    def node(self, node: Any) -> tuple[str, str, str] | None:
        """Adds a node; (op, name, reason) if there is no rule for it."""
        told = node.name or (node.output[0] if node.output else "?")
        try:
            rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            if rule is None:
                raise NoRuleError("there is no rule for it")
            scope = _scope(told)
            with self.graph.name_scope(f"{scope}_parts" if scope in self._outputs else scope):
                results = rule(Importer(), self._read(node, told))
        except NoRuleError as e:
            for name in node.output:
                self.values.setdefault(name, _unknown())
            return node.op_type, told, str(e)
        except (ValueError, TypeError, IndexError, ArithmeticError) as e:
            # Lists of attributes and constants are as long, and numbers as large, as they like.
            raise _invalid(f"node '{told}' ({node.op_type}): {e}") from e
        found = [results] if isinstance(results, Tensor) else list(results)
        self.values.update(zip(node.output, found, strict=False))
        return None

    def _read(self, node: Any, told: str) -> Node:
        inputs = [self._value(name, f"node '{told}'") if name else None for name in node.input]
        self._check(node)
        attrs = {a.name: self._attribute(a) for a in node.attribute}
        return Node(node.op_type, inputs, attrs, len(node.output), self.version)

    def _check(self, node: Any) -> None:
        """ValueError unless the node has the inputs and attributes that ONNX says it has."""
        schema = self._onnx.defs.get_schema(node.op_type, self.version)
        if not schema.min_input <= len(node.input) <= schema.max_input:
            raise ValueError(
                f"it has {len(node.input)} inputs, expected {schema.min_input} to "
                f"{schema.max_input}"
            )
        given = {a.name for a in node.attribute}
        lacking = [n for n, a in schema.attributes.items() if a.required and n not in given]
        if lacking:
            raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
        for attribute in node.attribute:
            known = schema.attributes.get(attribute.name)
            if known is None:
                raise ValueError(f"it has no attribute {attribute.name}")
            if attribute.type != known.type.value:
                raise ValueError(
                    f"its attribute {attribute.name} is of kind {attribute.type}, "
                    f"expected {known.type.value}"
                )

    def _attribute(self, attribute: Any) -> Any:
        if attribute.type == attribute.TENSOR:
            return array_of(attribute.t)
        if attribute.type in (attribute.GRAPH, attribute.GRAPHS):
            raise NoRuleError("it has a graph of its own")
        value = self._onnx.helper.get_attribute_value(attribute)
        return value.decode() if isinstance(value, bytes) else value


def _names(graph: Any) -> Iterator[str | bytes]:
    """All names in a model; protobuf gives those that are no UTF-8 as bytes."""
    for named in (*graph.initializer, *graph.input, *graph.output):
        yield named.name
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (a.name for a in node.attribute)


def _unknown() -> Tensor:
    """What a node without a rule gives: later nodes can still be looked at."""
    made: Tensor = emit("Placeholder", dtype=np.float32, shape=None)
    return made


def _scope(name: str) -> str:
    """The nearest name that a graph allows."""
    plain = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", name).strip("/")
    return plain if re.match(r"[A-Za-z0-9.]", plain) else f"onnx{plain}"
