"""A sample as a tiny graph: placeholders for data, constants for shapes and axes, variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.opdef import ArgDef
from opdock.graph.nodes.registry import OpSpec, is_plain
from opdock.testing.harness.namespace import tf

__all__ = ["VARIANTS", "BuiltCase", "Variant", "build_case", "can_stride"]

Array = npt.NDArray[Any]
Variant = Literal["plain", "strided", "unknown"]

VARIANTS: tuple[Variant, ...] = ("plain", "strided", "unknown")
"""Static shapes and fed data; the same data not contiguous; nothing known but the types."""


@dataclass
class BuiltCase:
    """One op in a graph.

    Attributes:
        op: the operation.
        feeds: what to feed.
        data: the fed tensors of floating or complex type with their values, in input order.
        places: the argument position of each of them.
        inputs: all input arrays in argument order, lists kept as lists: what the oracle gets.
        variables: the variables that stand for `Ref` and resource inputs, in input order.
    """

    op: Any
    feeds: dict[Any, Array] = field(default_factory=dict)
    data: list[tuple[Any, Array]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    variables: list[Any] = field(default_factory=list)

    @property
    def outputs(self) -> list[Any]:
        """The op's outputs that are values: neither handles nor references to a variable."""
        values = [t for t in self.op.outputs if t.dtype.base_dtype.is_numpy_compatible]
        return [t for t in values if not (self.variables and t.dtype._is_ref_dtype)]

    @property
    def fetches(self) -> list[Any]:
        """What to fetch so that the op runs."""
        return self.outputs or [self.op]

    def strided(self) -> BuiltCase:
        """The same call, fed what is not contiguous."""
        return replace(self, feeds={t: _strided(a) for t, a in self.feeds.items()})


def build_case(
    spec: OpSpec,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any],
    *,
    attr: str,
    dtype: DType,
    variant: Variant,
    scope: str,
    name: str,
) -> BuiltCase:
    """Adds one call of an op to the default graph.

    Args:
      spec: the op.
      inputs: the sample's inputs.
      attrs: the sample's attributes.
      attr: the type attribute that takes `dtype`.
      dtype: the claimed element type.
      variant: which twin of the sample.
      scope: the device of the op.
      name: a name scope of its own.

    Raises:
      ValueError, TypeError: whatever building the op raises.
    """
    args = spec.definition.inputs
    if len(inputs) != len(args):
        raise ValueError(f"{spec.name} takes {len(args)} inputs, the sample has {len(inputs)}")
    structural = [_is_structural(a, v, attr) for a, v in zip(args, inputs, strict=True)]
    if all(structural) and not spec.stateful:
        structural = [False] * len(args)
    case = BuiltCase(None)
    with tf.name_scope(f"{name}/"):
        tensors: list[Any] = []
        for arg, value, fixed in zip(args, inputs, structural, strict=True):
            if arg.is_list:
                made = [_tensor(case, arg, v, attr, dtype, variant, fixed, scope) for v in value]
                case.inputs.append([array for _, array in made])
                tensors.append([tensor for tensor, _ in made])
            else:
                tensor, array = _tensor(case, arg, value, attr, dtype, variant, fixed, scope)
                case.inputs.append(array)
                tensors.append(tensor)
        with tf.device(scope):
            spec(*tensors, name="op", **_attrs(spec, attrs, attr, dtype))
    case.op = tf.get_default_graph().get_operation_by_name(f"{name}/op")
    odd = [t.raw_shape for t in case.op.outputs if not is_plain(t.raw_shape)]
    if odd:
        raise TypeError(f"The shape function of {spec.name} gave {odd[0]!r}, expected a tuple")
    return case.strided() if variant == "strided" else case


def _is_structural(arg: ArgDef, value: Any, attr: str) -> bool:
    """Whether an input is a shape, an axis or the like: an integer that is not the data."""
    if arg.is_ref or (arg.type_attr and arg.type_attr == attr):
        return False
    if arg.is_list:
        return bool(value) and all(np.asarray(v).dtype.kind in "iu" for v in value)
    return np.asarray(value).dtype.kind in "iu"


def _tensor(
    case: BuiltCase,
    arg: ArgDef,
    value: Any,
    attr: str,
    claimed: DType,
    variant: Variant,
    structural: bool,
    scope: str,
) -> tuple[Any, Array]:
    array = np.asarray(value)
    if arg.is_ref or arg.dtype is dtypes.resource:
        return _variable(case, arg, array, scope), array
    dtype = _dtype_of(arg, array, attr, claimed)
    storage = dtype.np[0] if dtype.is_quantized else dtype.np
    array = array.astype(storage) if array.dtype != storage else array
    if structural and variant != "unknown":
        return tf.constant(array, dtype), array
    shape = None if variant == "unknown" else array.shape
    tensor = tf.placeholder(dtype, shape)
    fed = array.view(dtype.np) if dtype.is_quantized else array
    case.feeds[tensor] = fed
    if dtype.is_floating or dtype.is_complex:
        case.data.append((tensor, array))
        case.places.append(len(case.inputs))
    return tensor, array


def _dtype_of(arg: ArgDef, array: Array, attr: str, claimed: DType) -> DType:
    if arg.dtype is not None:
        return arg.dtype
    if arg.type_attr and arg.type_attr == attr:
        return claimed
    return dtypes.string if array.dtype.kind in "OSU" else dtypes.as_dtype(array.dtype)


def _variable(case: BuiltCase, arg: ArgDef, array: Array, scope: str) -> Any:
    with tf.device(scope):
        variable = tf.Variable(
            array, trainable=False, collections=[], use_resource=not arg.is_ref, name="variable"
        )
    case.variables.append(variable)
    return variable._ref() if arg.is_ref else variable.handle


def _attrs(spec: OpSpec, attrs: Mapping[str, Any], attr: str, dtype: DType) -> dict[str, Any]:
    """The sample's attributes for the op; those that follow from the inputs are left out."""
    definition = spec.definition
    out = {k: _native(v) for k, v in attrs.items() if k not in definition.inferred}
    if attr and attr not in definition.inferred and attr not in out:
        out[attr] = dtype
    return out


def _native(value: Any) -> Any:
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtypes.string if value == np.dtype(object) else dtypes.as_dtype(value)
    if isinstance(value, (list, tuple)):
        return [_native(v) for v in value]
    return value


def can_stride(inputs: Sequence[Any]) -> bool:
    """Whether any input can be laid out with gaps."""
    flat = [v for x in inputs for v in (x if isinstance(x, (list, tuple)) else [x])]
    return any(np.ndim(v) > 0 and np.size(v) > 1 for v in flat)


def _strided(array: Array) -> Array:
    """The same values with gaps between them and the dimensions in reverse order of memory."""
    if array.ndim == 0 or array.size <= 1:
        return array
    spread = np.zeros([2 * d for d in reversed(array.shape)], array.dtype).T
    view = spread[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view
