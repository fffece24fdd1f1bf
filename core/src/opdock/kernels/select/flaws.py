"""What is wrong with a kernel record as such, whatever node it is asked about.

A record that names what its op does not have is never used, or not as its author meant. Nothing
raises for it while programs run: `opdock doctor --open` and the conformance suite tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from opdock.graph.nodes import registry
from opdock.graph.nodes.opdef import OpDef
from opdock.kernels.select.table import Kernel
from opdock.nearest import nearest

__all__ = ["flaw"]

_TYPES: Final = ("type", "list(type)")


def flaw(kernel: Kernel) -> str:
    """What is wrong with a record, in words; empty when nothing is.

    An op type that nobody has registered is no offence: a plugin may know later ops of
    TensorFlow's than core does, and its kernels for them disturb nobody.
    """
    spec = registry.find(kernel.op)
    if spec is None:
        # A fused op, "vendor>Name", is in no graph that a user builds.
        return "" if ">" in kernel.op else f"no op {kernel.op} is registered{_meant(kernel.op)}"
    return next(_flaws(kernel, spec.definition), "")


def _flaws(kernel: Kernel, definition: OpDef) -> Iterator[str]:
    op = kernel.op
    types = [name for name, attr in definition.attrs.items() if attr.type in _TYPES]
    for name, admitted in kernel.dtypes.items():
        attr = definition.attrs.get(name)
        if attr is None or name not in types:
            what = "an attribute that it does not have" if attr is None else "no type attribute"
            told = ", ".join(types) or "none"
            yield f"the record constrains {name}, for {op} {what} (type attributes: {told})"
        elif attr.allowed is not None and not admitted & frozenset(attr.allowed):
            given = ", ".join(sorted(t.name for t in admitted))
            known = ", ".join(t.name for t in attr.allowed)
            yield f"the record admits {given} for {name}, and {op} only {known}"
    inputs = [arg.name for arg in definition.inputs]
    outputs = [arg.name for arg in definition.outputs]
    for field, known_names in (
        ("host_inputs", inputs), ("traced", sorted(kernel.host_inputs)),
        ("host_outputs", outputs), ("keeps", inputs + outputs),
    ):  # fmt: skip
        unknown = sorted((getattr(kernel, field) or frozenset()) - set(known_names))
        if unknown:
            told = ", ".join(known_names) or "none"
            what = "none of its host_inputs" if field == "traced" else "no argument"
            yield f"{field} names {unknown[0]}, for {op} {what} (it has {told})"
    for out, of in kernel.may_alias.items():
        for index, args, what in (
            (out, definition.outputs, "result"), (of, definition.inputs, "argument"),
        ):  # fmt: skip
            if index < 0 or (index >= len(args) and not any(arg.is_list for arg in args)):
                yield f"may_alias has {{{out}: {of}}}, and {op} no {what} {index}"


def _meant(op: str) -> str:
    known = [spec.name for spec in registry.all_ops()]
    close = nearest(op, known, cutoff=0.8)
    return f"; did you mean {close}?" if close else ""
