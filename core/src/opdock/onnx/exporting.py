"""From a frozen graph to an ONNX model."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.api.graph_util import extract_sub_graph
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.serial.importer import import_graph_def
from opdock.onnx.library import IR_VERSION, OPSET, NoRuleError, code_of, library, missing

__all__ = ["Exporter", "exports", "to_onnx"]

Rule = Callable[["Exporter", Operation], None]

_RULES: Final[dict[str, Rule]] = {}
FAMILIES: Final = ("arithmetic", "layers", "shapes")


def exports(*ops: str) -> Callable[[Rule], Rule]:
    """Registers the rule of op types."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


class Exporter:
    """An ONNX graph as it is being made."""

    def __init__(self) -> None:
        self.onnx = library()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names: dict[Tensor, str] = {}
        self._taken: set[str] = set()
        self._kept: dict[Any, str] = {}

    def unique(self, wanted: str) -> str:
        """A name that nothing has yet."""
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def name(self, tensor: Tensor) -> str:
        """The name of a tensor: its op's, for the first result."""
        found = self._names.get(tensor)
        if found is None:
            plain = tensor.name.removesuffix(":0")
            found = self._names[tensor] = self.unique(plain)
        return found

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant, one for all that are alike."""
        array = np.asarray(value, dtype)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size < 64 else None
        if key is not None and key in self._kept:
            return self._kept[key]
        name = self.unique("constant")
        self._store(name, array)
        if key is not None:
            self._kept[key] = name
        return name

    def _store(self, name: str, array: Any) -> None:
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array, order="C"), name))

    def keep(self, tensor: Tensor, value: Any) -> None:
        """A tensor whose value is a constant."""
        code_of(tensor.dtype)
        self._store(self.name(tensor), np.asarray(value))

    def emit(self, op: str, *inputs: Tensor | str, out: Tensor | None = None, **attrs: Any) -> str:
        """Adds a node of one result; its name.

        Args:
            op: ONNX's op type.
            *inputs: tensors of the graph, or names.
            out: the tensor that is its result, if it is one of the graph.
            **attrs: attributes.
        """
        name = self.unique(op.lower()) if out is None else self.name(out)
        self.several(op, inputs, [name], **attrs)
        return name

    def several(
        self, op: str, inputs: Sequence[Tensor | str], outputs: Sequence[str], **attrs: Any
    ) -> None:
        """Adds a node."""
        names = [i if isinstance(i, str) else self.name(i) for i in inputs]
        self.nodes.append(
            self.onnx.helper.make_node(op, names, list(outputs), name=outputs[0], **attrs)
        )

    def known(self, tensor: Tensor, what: str) -> Any:
        """The value of a tensor.

        Raises:
            NoRuleError: it is not known while the graph is read.
        """
        value = constant_value(tensor)
        if value is None:
            raise NoRuleError(f"its {what} is no constant")
        return value


def to_onnx(graph_def: Any, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    """A frozen graph as an ONNX model.

    Args:
        graph_def: a `GraphDef` without variables.
        inputs: names of the nodes, or tensors, that are fed.
        outputs: names of the nodes, or tensors, that are wanted.

    Returns:
        A `ModelProto`, whose inputs and outputs have the names of the graph.

    Raises:
        InvalidArgumentError: there is no node of such a name, or a placeholder is no input.
        UnimplementedError: nodes cannot be translated, which it lists; or onnx is not installed.
    """
    for family in FAMILIES:
        importlib.import_module(f"opdock.onnx.to_{family}")
    exporter = Exporter()
    known = {node.name for node in graph_def.node}
    for name in (*inputs, *outputs):
        if name.partition(":")[0] not in known:
            raise errors.InvalidArgumentError(None, None, f"There is no node '{name}' in the graph")
    plain = [name.partition(":")[0] for name in (*outputs, *inputs)]
    with Graph().as_default() as graph:
        import_graph_def(extract_sub_graph(graph_def, plain), name="")
        fed, wanted = ([_tensor(graph, n) for n in names] for names in (inputs, outputs))
        refused = _translate(exporter, fed, wanted)
        if refused:
            raise missing("ONNX", refused)
        helper = exporter.onnx.helper
        infos = [[_info(exporter, t) for t in tensors] for tensors in (fed, wanted)]
        made = helper.make_graph(exporter.nodes, "graph", *infos, exporter.constants)
    return helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name="opdock",
    )  # fmt: skip


def _tensor(graph: Graph, name: str) -> Tensor:
    found: Tensor = graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    return found


def _translate(
    exporter: Exporter, fed: Sequence[Tensor], wanted: Sequence[Tensor]
) -> list[tuple[str, str, str]]:
    """Adds the nodes that the outputs need; (op, name, reason) of those that cannot be."""
    refused = []
    for op in _needed(fed, wanted):
        if op.type == "Placeholder":
            raise errors.InvalidArgumentError(
                None, None, f"'{op.name}' is a placeholder that is not among the inputs"
            )
        rule = _RULES.get(op.type)
        try:
            if op._control_inputs and op.type == "NoOp":
                continue
            if rule is None:
                raise NoRuleError("there is no rule for it")
            rule(exporter, op)
        except NoRuleError as e:
            refused.append((op.type, op.name, str(e)))
    return refused


def _needed(fed: Sequence[Tensor], wanted: Sequence[Tensor]) -> list[Operation]:
    """The ops between, each after what it takes."""
    stops: set[Tensor] = set(fed)
    order: dict[Operation, None] = {}
    stack: list[tuple[Operation, bool]] = [(t.op, False) for t in wanted if t not in stops]
    while stack:
        op, done = stack.pop()
        if done:
            order[op] = None
        elif op not in order:
            stack.append((op, True))
            stack.extend((t.op, False) for t in op.inputs if t not in stops and t.op not in order)
    return list(order)


def _info(exporter: Exporter, tensor: Tensor) -> Any:
    shape = tensor.get_shape()
    name = exporter.name(tensor)
    dims: list[Any] | None = None
    if shape.ndims is not None:
        dims = [f"{name}_{i}" if n is None else n for i, n in enumerate(shape.as_list())]
    if tensor.dtype.base_dtype is dtypes.string:
        raise errors.UnimplementedError(None, None, f"'{name}' holds strings")
    return exporter.onnx.helper.make_tensor_value_info(name, code_of(tensor.dtype), dims)
