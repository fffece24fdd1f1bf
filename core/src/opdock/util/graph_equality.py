"""Whether two GraphDefs say the same graph, and where they first do not."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import text_format

from opdock.io.protos import GraphDef

__all__ = ["assert_equal_graph_def"]

_SHARDED_SAVE = re.compile(rb"_temp_[0-9a-z]{32}/part")
_SHARED_NAME = re.compile(rb"hash_table_[0-9a-z\-]+")


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Raises AssertionError unless two GraphDefs have equal nodes.

    Nodes are matched by name. Versions, the order of nodes, attributes and control inputs, and
    attributes whose name begins with an underscore do not count.

    Args:
        actual: the GraphDef there is.
        expected: the one there should be.
        checkpoint_v2: leave out the random prefixes of sharded checkpoints.
        hash_table_shared_name: leave out the shared names that hash tables made for themselves.

    Raises:
        AssertionError: they differ.
        TypeError: one is no GraphDef.
    """
    for said, given in (("actual", actual), ("expected", expected)):
        if not isinstance(given, GraphDef):
            raise TypeError(f"Expected tf.GraphDef for {said}, got {type(given).__name__}")

    def counts(node: Any, name: str) -> bool:
        if name.startswith("_"):
            return False
        value = node.attr[name]
        if checkpoint_v2 and len(value.tensor.string_val) == 1:
            return not _SHARDED_SAVE.match(value.tensor.string_val[0])
        if hash_table_shared_name and node.op == "HashTableV2" and name == "shared_name":
            return not _SHARED_NAME.match(value.s)
        return True

    found = {node.name: node for node in actual.node}
    for wanted in expected.node:
        node = found.pop(wanted.name, None)
        if node is None:
            raise AssertionError(f"Did not find expected node '{_summary(wanted)}'")
        difference = _heads(node, wanted) or _inputs(node, wanted)
        difference = difference or _attrs(
            {name: node.attr[name] for name in node.attr if counts(node, name)},
            {name: wanted.attr[name] for name in wanted.attr if counts(wanted, name)},
        )
        if difference:
            raise AssertionError(f"Node named '{node.name}' {difference}")
    for node in reversed(found.values()):
        raise AssertionError(f"Found unexpected node '{_summary(node)}'")


def _heads(node: Any, wanted: Any) -> str:
    for field in ("op", "device"):
        has, should = getattr(node, field), getattr(wanted, field)
        if has != should:
            return f"has {field} '{has}' that is not expected '{should}'"
    return ""


def _inputs(node: Any, wanted: Any) -> str:
    if len(node.input) != len(wanted.input):
        has, should = ", ".join(node.input), ", ".join(wanted.input)
        return f"has inputs '{has}' that don't match expected '{should}'"
    data = [[i for i in n.input if not i.startswith("^")] for n in (node, wanted)]
    for i, (has, should) in enumerate(zip(*data, strict=False)):
        if has.removesuffix(":0") != should.removesuffix(":0"):
            return f"has input {i} '{has}' that doesn't match expected '{should}'"
    control = [{i for i in n.input if i.startswith("^")} for n in (node, wanted)]
    for name in sorted(control[1] - control[0]):
        return f"missing expected control input '{name}'"
    for name in sorted(control[0] - control[1]):
        return f"has unexpected control input '{name}'"
    return ""


def _attrs(attrs: dict[str, Any], wanted: dict[str, Any]) -> str:
    for name, should in wanted.items():
        if name not in attrs:
            return f"missing expected attr '{name}' with value: {_text(should)}"
        if attrs[name] != should:
            has = _text(attrs[name])
            return f"has attr '{name}' with value: {has} that does not match expected: " + _text(
                should
            )
    for name, has in attrs.items():
        if name not in wanted:
            return f"has unexpected attr '{name}' with value: {_text(has)}"
    return ""


def _summary(node: Any) -> str:
    attrs = ", ".join(f"{name}={_text(node.attr[name])}" for name in sorted(node.attr))
    inputs = ", ".join(node.input)
    return f"{{{{node {node.name}}}}} = {node.op}[{attrs}]({inputs})"


def _text(value: Any) -> str:
    return str(text_format.MessageToString(value, as_one_line=True))
