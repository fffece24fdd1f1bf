"""The docstrings of op types, which `tf.raw_ops` and the `gen_*_ops` modules show.

What an op computes stands in `op_docs.txt`, below the name of its family: a line has the op types
that compute the same, a colon, and the sentences. All else follows from the op's definition.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any, Final

from opdock.dtypes import DType
from opdock.graph.nodes.opdef import ArgDef, AttrDef
from opdock.graph.nodes.registry import OpSpec

__all__ = ["docstring", "sentences"]

_RAISES: Final = """Raises:
    TypeError: an argument is missing, or of a type that is not allowed.
    ValueError: attributes or shapes that are known do not go together.
    InvalidArgumentError: values do not, or shapes that only a step shows."""
_KINDS: Final = {
    "func": "a function",
    "int": "an integer",
    "shape": "a shape",
    "tensor": "a constant",
    "type": "an element type",
}


@functools.cache
def sentences() -> Mapping[str, str]:
    """Op type -> what it computes, of all op types of core's."""
    text = (resources.files(__package__) / "op_docs.txt").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for line in text.splitlines():
        ops, colon, said = line.partition(": ")
        if colon:
            found.update(dict.fromkeys(ops.split(), said))
    return found


def docstring(spec: OpSpec, public: Mapping[str, str]) -> str:
    """What an op computes, takes and gives.

    Args:
        spec: the op.
        public: what arguments are called that have another name than in the op's definition.
    """
    definition = spec.definition
    own = [a for name, a in definition.attrs.items() if name not in definition.inferred]
    arguments = [(arg.name, _tensors(arg, spec)) for arg in definition.inputs]
    arguments += [(a.name, _attribute(a)) for a in sorted(own, key=lambda a: a.has_default)]
    lines = [f"    {public.get(name, name)}: {text}" for name, text in arguments]
    lines.append("    name: a name for the operation; the op type by default.")
    parts = [sentences().get(spec.name, f"{spec.name}: {spec.text[0]}")]
    parts += ["Args:\n" + "\n".join(lines), f"Returns:\n    {_results(spec)}", _RAISES]
    if types := list(_types(spec)):
        parts.insert(1, "\n".join(types))
    if not spec.is_differentiable:
        parts.append("No gradient flows through it.")
    return "\n\n".join(parts)


def _types(spec: OpSpec) -> Iterator[str]:
    """What the inferred attributes may be that have bounds."""
    for name in (n for n in spec.definition.attrs if n in spec.definition.inferred):
        attr = spec.definition.attrs[name]
        if attr.allowed is not None:
            each = "each of " if attr.type.startswith("list") else ""
            yield f"{each}`{name}` is {_one_of(attr.allowed)}."


def _tensors(arg: ArgDef, spec: OpSpec) -> str:
    """An argument, or a result, in words."""
    kind = _kind(arg)
    if arg.type_list_attr:
        return f"a list of tensors of the types `{arg.type_list_attr}`."
    if arg.number_attr:
        least = spec.definition.attrs[arg.number_attr].minimum
        at_least = f", at least {least}" if least else ""
        return f"a list of `{arg.number_attr}` tensors{at_least}, of type {kind}."
    if arg.is_ref:
        return f"a reference to a variable of type {kind}."
    return f"a tensor of type {kind}."


def _kind(arg: ArgDef) -> str:
    return f"`{arg.type_attr}`" if arg.type_attr else arg.dtype.name if arg.dtype else ""


def _attribute(attr: AttrDef) -> str:
    inner = attr.type.removeprefix("list(").removesuffix(")")
    one = _KINDS.get(inner, f"a {inner}")
    text = one if inner == attr.type else f"a list, each {one}"
    if attr.allowed is not None:
        text += f", {_one_of(attr.allowed)}"
    if attr.minimum is not None:
        text += f", at least {attr.minimum}" + (" of them" if inner != attr.type else "")
    return f"{text}; {_shown(attr.default)} by default." if attr.has_default else f"{text}."


def _results(spec: OpSpec) -> str:
    outputs = spec.definition.outputs
    if not outputs:
        return "The operation; None where operations run as they are made."
    if len(outputs) == 1:
        text = _tensors(outputs[0], spec)
        return f"`{outputs[0].name}`, {text}"
    each = "; ".join(f"`{o.name}`, {_tensors(o, spec).removesuffix('.')}" for o in outputs)
    return f"A named tuple: {each}."


def _one_of(allowed: Iterable[Any]) -> str:
    *most, last = map(_shown, allowed)
    return f"{', '.join(most)} or {last}" if most else last


def _shown(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return "an unknown shape" if value is None else repr(value)
