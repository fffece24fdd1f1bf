"""Narrows a kernel to the element types that a device can hold, or that it takes the kernel for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from opdock.dtypes import ALL, DType, resource, variant
from opdock.graph.nodes import registry
from opdock.graph.nodes.opdef import ArgDef, OpDef
from opdock.kernels.select.table import Kernel


def restrict(kernel: Kernel, allowed: frozenset[DType]) -> Kernel | None:
    """The kernel with tighter type constraints, or None when nothing is left of it.

    Arguments in host memory may have any type. The constraints stay data, so what the kernel claims
    is what the device can do. One that computes in other types than the device has is refused.

    Args:
        kernel: a kernel written without the device in mind.
        allowed: the types of the device's buffers.
    """
    spec = registry.find(kernel.op)
    if spec is None:
        # An op type that no graph can hold, such as a fusion's: its kernel says what it takes.
        return kernel
    on_device = list(_device_arguments(spec.definition, kernel))
    if any(arg.dtype is not None and arg.dtype not in allowed for arg in on_device):
        return None
    if any(a.dtype is variant for a in (*spec.definition.inputs, *spec.definition.outputs)):
        allowed |= {variant}  # an element of a list may be a list, which is nothing in memory
    types = dict(kernel.dtypes)
    for attr in {a.type_attr or a.type_list_attr for a in on_device} - {""}:
        types[attr] = types.get(attr, _declared(spec.definition, attr)) & allowed
        if not types[attr]:
            return None
    lacking = sorted(t.name for t in kernel.computes_in - allowed)
    if lacking and not kernel.refused:
        why = f"it computes in {' and '.join(lacking)}, which the device does not hold"
        return dataclasses.replace(kernel, dtypes=types, refused=why)
    return dataclasses.replace(kernel, dtypes=types)


def without_types(kernel: Kernel, reasons: Mapping[DType, str]) -> Iterable[Kernel]:
    """The kernel without some element types, and refused for each of those with its reason.

    Args:
        kernel: of an op with a type attribute: "T", or the first there is.
        reasons: by element type.

    Raises:
        ValueError: the op has no type attribute.
    """
    spec = registry.find(kernel.op)
    attrs = {} if spec is None else spec.definition.attrs
    names = [a.name for a in attrs.values() if a.type == "type"]
    if spec is None or not names:
        raise ValueError(f"{kernel.op} has no element type by which to refuse a kernel")
    attr = "T" if "T" in names else names[0]
    takes = kernel.dtypes.get(attr, _declared(spec.definition, attr))
    parts = [(frozenset({dtype}), why) for dtype, why in reasons.items() if dtype in takes]
    for types, why in [*parts, (takes - reasons.keys(), "")]:
        if types:
            dtypes = {**kernel.dtypes, attr: types}
            yield dataclasses.replace(kernel, dtypes=dtypes, refused=why)


def _device_arguments(definition: OpDef, kernel: Kernel) -> Iterable[ArgDef]:
    # A handle names a variable and is no value in the device's memory.
    yield from (
        a for a in definition.inputs if a.name not in kernel.host_inputs and a.dtype is not resource
    )
    yield from (
        a for a in definition.outputs
        if a.name not in kernel.host_outputs and a.dtype is not resource
    )  # fmt: skip


def _declared(definition: OpDef, attr: str) -> frozenset[DType]:
    declared = definition.attrs[attr].allowed
    return ALL if declared is None else frozenset(declared)
