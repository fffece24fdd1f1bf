"""From a call of an op definition to a node: input conversion, type inference, attributes."""

from __future__ import annotations

import collections
import contextlib
import re
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from opdock import dtypes, shapes
from opdock.dtypes import DType
from opdock.graph.nodes.opdef import ArgDef, AttrDef, float_attr
from opdock.graph.nodes.operation import Tensor, has_graph
from opdock.graph.nodes.scopes import graph_for
from opdock.nearest import near

if TYPE_CHECKING:
    from opdock.graph.nodes.registry import OpSpec


def _results(op: str, names: list[str]) -> Any:
    """What the outputs of an op come as, if it has several; "acme>Split" becomes "acme_Split"."""
    if len(names) < 2:
        return None
    name = re.sub(r"\W|^(?=\d)", "_", op)
    return collections.namedtuple(name, names, rename=True)  # noqa: PYI024


class Builder:
    """Builds nodes of one op type; everything that does not depend on the call is prepared once."""

    def __init__(self, spec: OpSpec) -> None:
        self._spec = spec
        definition = spec.definition
        self._inputs = definition.inputs
        self._outputs = definition.outputs
        self._explicit = [a for n, a in definition.attrs.items() if n not in definition.inferred]
        self._inferred = [a for n, a in definition.attrs.items() if n in definition.inferred]
        self._explicit_names = {a.name for a in self._explicit}
        self._allowed = {
            a.name: frozenset(a.allowed)
            for a in definition.attrs.values()
            if a.allowed and a.type in ("type", "list(type)")
        }
        self._ref_inputs = [
            i
            for i, a in enumerate(self._inputs)
            if a.is_ref and not any(b.is_list for b in self._inputs)
        ]
        # The common case: plain tensors of one type attribute each, no lists.
        self._plain = all(not a.is_list and not a.is_ref for a in self._inputs)
        self._result_type = _results(spec.name, [o.name for o in self._outputs])

    def build(self, inputs: tuple[Any, ...], name: str | None, attrs: dict[str, Any]) -> Any:
        """Adds the node and returns its result as described at `OpSpec.__call__`."""
        if len(inputs) != len(self._inputs):
            raise TypeError(
                f"Op '{self._spec.name}' takes {len(self._inputs)} inputs "
                f"({', '.join(a.name for a in self._inputs)}), got {len(inputs)}."
            )
        graph = graph_for(inputs)
        values: dict[str, Any] = {}
        kind = graph.tensor_type
        if self._plain and all(type(t) is kind for t in inputs):
            flat: list[Tensor] = list(inputs)
            self._check_plain(flat, values)
            name = name or self._spec.name
            # A trailing slash is an open scope's own name, to be used as it is.
            node_name = name[:-1] if name[-1] == "/" else graph._node_name(name)
        else:
            with graph.name_scope(name or self._spec.name) as scope:
                flat = self._convert(inputs, values, attrs)
                node_name = scope[:-1]
        all_attrs = self._attributes(values, attrs)
        output_dtypes = self._output_dtypes(all_attrs)
        if self._ref_inputs:
            # A reference cannot cross devices, so its users stay with the variable.
            with contextlib.ExitStack() as stack:
                for i in self._ref_inputs:
                    stack.enter_context(graph.colocate_with(flat[i]))
                op = graph._create_op(self._spec, node_name, flat, all_attrs, output_dtypes)
        else:
            op = graph._create_op(self._spec, node_name, flat, all_attrs, output_dtypes)
        return self._result(op, all_attrs)

    # ------------------------------------------------------------ inputs
    def _check_plain(self, tensors: list[Tensor], values: dict[str, Any]) -> None:
        for arg, tensor in zip(self._inputs, tensors, strict=True):
            base = tensor._dtype.base_dtype
            if arg.dtype is not None:
                if base is not arg.dtype:
                    self._wrong_type(arg, base, arg.dtype, None)
            else:
                known = values.get(arg.type_attr)
                if known is None:
                    self._check_allowed(arg, base)
                    values[arg.type_attr] = base
                elif known is not base:
                    self._wrong_type(arg, base, known, self._first_arg(arg.type_attr))

    def _convert(
        self, inputs: tuple[Any, ...], values: dict[str, Any], attrs: dict[str, Any]
    ) -> list[Tensor]:
        for attr in self._inferred:
            # A type attribute may be given explicitly too, as raw ops do.
            if attr.name in attrs and attr.type == "type":
                values[attr.name] = dtypes.as_dtype(attrs.pop(attr.name)).base_dtype
            elif attr.name in attrs:
                attrs.pop(attr.name)
        flat: list[Tensor] = []
        for arg, value in zip(self._inputs, inputs, strict=True):
            if arg.is_list:
                flat.extend(self._convert_list(arg, value, values))
            else:
                flat.append(self._convert_one(arg, value, values))
        return flat

    def _convert_one(self, arg: ArgDef, value: Any, values: dict[str, Any]) -> Tensor:
        from opdock.graph.nodes.convert import convert_to_tensor

        wanted = arg.dtype or values.get(arg.type_attr)
        preferred = None
        if wanted is None:
            default = self._spec.definition.attrs[arg.type_attr]
            preferred = default.default if default.has_default else None
            if preferred is dtypes.int32 and not _is_small(value):
                preferred = None  # its own type has room for it
        if arg.is_ref:
            tensor = self._as_ref(arg, value)
        elif isinstance(value, Tensor):
            tensor = value
        else:
            try:
                tensor = convert_to_tensor(value, wanted, arg.name, preferred)
            except (TypeError, ValueError) as e:
                if wanted is None or _is_graph_error(e):
                    raise
                self._raise_unfit(arg, value, wanted, e)
        base = tensor._dtype.base_dtype
        if wanted is not None and base is not wanted:
            self._wrong_type(
                arg, base, wanted, None if arg.dtype else self._first_arg(arg.type_attr)
            )
        if arg.type_attr and wanted is None:
            values[arg.type_attr] = base
        if arg.type_attr:
            self._check_allowed(arg, base)
        return tensor

    def _convert_list(self, arg: ArgDef, value: Any, values: dict[str, Any]) -> list[Tensor]:
        from opdock.graph.nodes.convert import convert_to_tensor

        if not isinstance(value, (list, tuple)):
            raise TypeError(
                f"Expected list for '{arg.name}' argument to '{self._spec.name}' Op, not {value!r}."
            )
        if arg.type_list_attr:
            return self._convert_typed_list(arg, value, values)
        minimum = self._spec.definition.attrs[arg.number_attr].minimum if arg.number_attr else None
        count = values.setdefault(arg.number_attr, len(value))
        if count != len(value):
            raise ValueError(
                f"List argument '{arg.name}' to '{self._spec.name}' Op with length {len(value)} "
                f"must match length {count} of argument '{self._number_arg(arg.number_attr)}'."
            )
        if minimum is not None and len(value) < minimum:
            raise ValueError(
                f"List argument '{arg.name}' to '{self._spec.name}' Op with length {len(value)} "
                f"shorter than minimum length {minimum}."
            )
        wanted = arg.dtype or values.get(arg.type_attr)
        if (
            wanted is None
            and not value
            and not self._spec.definition.attrs[arg.type_attr].has_default
        ):
            raise TypeError(
                "Don't know how to infer type variable from empty input list passed to input "
                f"'{arg.name}' of '{self._spec.name}' Op."
            )
        if wanted is None:
            typed = next((v for v in value if hasattr(v, "dtype") and has_graph(v)), None)
            if typed is not None:
                wanted = dtypes.as_dtype(typed.dtype).base_dtype
        known = values.get(arg.type_attr) is not None
        try:
            out = [
                self._as_ref(arg, item)
                if arg.is_ref
                else convert_to_tensor(
                    item, None if isinstance(item, Tensor) else wanted, f"{arg.name}_{i}"
                )
                for i, item in enumerate(value)
            ]
        except (TypeError, ValueError) as e:
            if _is_graph_error(e):
                raise
            raise self._wrong_types(arg, value, wanted, known) from None
        wanted = wanted or (out[0]._dtype.base_dtype if out else None)
        if any(t._dtype.base_dtype is not wanted for t in out):
            raise self._wrong_types(arg, value, wanted, known)
        if arg.type_attr and wanted is not None:
            values[arg.type_attr] = wanted
            self._check_allowed(arg, wanted)
        return out

    def _convert_typed_list(self, arg: ArgDef, value: Any, values: dict[str, Any]) -> list[Tensor]:
        from opdock.graph.nodes.convert import convert_to_tensor

        known = values.get(arg.type_list_attr)
        if known is not None and len(known) != len(value):
            raise ValueError(
                f"List argument '{arg.name}' to '{self._spec.name}' Op with length {len(value)} "
                f"must match length {len(known)}."
            )
        try:
            out = [
                convert_to_tensor(v, None, f"{arg.name}_{i}", None if known is None else known[i])
                for i, v in enumerate(value)
            ]
        except (TypeError, ValueError) as e:
            if _is_graph_error(e):
                raise
            raise self._wrong_types(arg, value, None, False) from None
        found = [t._dtype.base_dtype for t in out]
        if known is not None and found != known:
            first = next(a for a in self._inputs if a.type_list_attr == arg.type_list_attr)
            raise TypeError(
                f"Input '{arg.name}' of '{self._spec.name}' Op has type list of "
                f"{', '.join(t.name for t in found)} that does not match type list "
                f"{', '.join(t.name for t in known)} of argument '{first.name}'."
            )
        for dtype in found:
            self._check_allowed(arg, dtype)
        values[arg.type_list_attr] = found
        return out

    def _as_ref(self, arg: ArgDef, value: Any) -> Tensor:
        ref = getattr(value, "_ref", None)
        found = value if ref is None else ref()
        if not isinstance(found, Tensor) or not found._dtype._is_ref_dtype:
            raise TypeError(
                f"'{self._spec.name}' Op requires that input '{arg.name}' be a mutable tensor "
                "(e.g.: a tf.Variable)"
            )
        return found

    # ------------------------------------------------------------ complaints
    def _first_arg(self, type_attr: str) -> str | None:
        return next((a.name for a in self._inputs if a.type_attr == type_attr), None)

    def _number_arg(self, number_attr: str) -> str:
        return next(a.name for a in self._inputs if a.number_attr == number_attr)

    def _raise_unfit(
        self, arg: ArgDef, value: Any, wanted: DType, error: TypeError | ValueError
    ) -> NoReturn:
        """Says why a value that is no tensor is none of the type that is due.

        A program's conversion raises ValueError for another type; without a type it tells its own.
        """
        from opdock.graph.nodes.convert import convert_to_tensor

        typed = hasattr(value, "dtype") and has_graph(value)
        if isinstance(error, TypeError) and not typed:
            raise TypeError(
                f"Expected {wanted.name} passed to parameter '{arg.name}' of op "
                f"'{self._spec.name}', got {value!r} of type '{type(value).__name__}' instead. "
                f"Error: {error}"
            ) from None
        try:
            got = convert_to_tensor(value)._dtype.base_dtype
        except ValueError as e:
            head = f"Tried to convert '{arg.name}' to a tensor and failed."
            raise ValueError(f"{head} Error: {e}") from None
        if got is wanted:
            raise error
        self._wrong_type(arg, got, wanted, None if arg.dtype else self._first_arg(arg.type_attr))

    def _wrong_type(self, arg: ArgDef, got: DType, wanted: DType, first: str | None) -> NoReturn:
        head = (
            f"Input '{arg.name}' of '{self._spec.name}' Op has type {got.name} that does not match"
        )
        if first is not None and first != arg.name:
            raise TypeError(f"{head} type {wanted.name} of argument '{first}'.")
        raise TypeError(f"{head} expected type of {wanted.name}.")

    def _wrong_types(
        self, arg: ArgDef, value: Any, wanted: DType | None, inferred: bool
    ) -> TypeError:
        """What is wrong with a list whose elements are not all tensors of the type that is due."""
        head = f"Tensors in list passed to '{arg.name}' of '{self._spec.name}' Op have types "
        head += f"[{', '.join(_type_name(v) for v in value)}]"
        if arg.type_list_attr:
            return TypeError(f"{head} that are invalid. Tensors: {value}")
        if arg.dtype is not None:
            return TypeError(f"{head} that do not match expected type {arg.dtype.name}.")
        if inferred and wanted is not None:
            return TypeError(
                f"{head} that do not match type {wanted.name} inferred from earlier arguments."
            )
        return TypeError(f"{head} that don't all match.")

    def _check_allowed(self, arg: ArgDef, base: DType) -> None:
        allowed = self._allowed.get(arg.type_attr or arg.type_list_attr)
        if allowed is not None and base not in allowed:
            names = ", ".join(t.name for t in sorted(allowed, key=int))
            raise _about(
                self._spec.name,
                f"Value passed to parameter '{arg.name}' has DataType {base.name} not in list of "
                f"allowed values: {names}",
            )

    # ------------------------------------------------------------ attributes and outputs
    def _attributes(self, values: dict[str, Any], attrs: dict[str, Any]) -> dict[str, Any]:
        for attr in self._inferred:
            if attr.name not in values:
                if attr.name in attrs:
                    values[attr.name] = coerce_attr(self._spec.name, attr, attrs[attr.name])
                elif attr.has_default:
                    values[attr.name] = attr.default
        for attr in self._explicit:
            given = attrs.get(attr.name)
            asked = attr.name in attrs and (attr.type == "shape" or not attr.has_default)
            if given is not None or asked:
                values[attr.name] = coerce_attr(self._spec.name, attr, given)
            elif attr.has_default:
                default = attr.default
                values[attr.name] = list(default) if isinstance(default, list) else default
            else:
                raise TypeError(
                    f"Op '{self._spec.name}' needs the attribute '{attr.name}' ({attr.type})."
                )
        for key, value in attrs.items():
            if key not in values:
                if not key.startswith("_"):
                    raise TypeError(
                        f"Op '{self._spec.name}' has no attribute '{key}'.{near(key, values)}"
                    )
                values[key] = value
        return values

    def _output_dtypes(self, attrs: dict[str, Any]) -> list[DType]:
        out: list[DType] = []
        for arg in self._outputs:
            if arg.type_list_attr:
                out.extend(attrs[arg.type_list_attr])
                continue
            dtype: DType = arg.dtype or attrs[arg.type_attr]
            if arg.is_ref:
                dtype = dtype.as_ref
            out.extend([dtype] * (attrs[arg.number_attr] if arg.number_attr else 1))
        return out

    def _result(self, op: Any, attrs: dict[str, Any]) -> Any:
        # What has no outputs is its operation, which is over where operations run as they are made.
        eager = op.graph.eager
        if not self._outputs:
            return None if eager else op
        if self._result_type is None:
            if not self._outputs[0].is_list:
                return op.outputs[0]
            # A list of its own: gradients of control flow add outputs.
            return list(op.outputs) or ([] if eager else op)
        groups, start = [], 0
        for arg in self._outputs:
            if not arg.is_list:
                groups.append(op.outputs[start])
                start += 1
                continue
            n = attrs[arg.number_attr] if arg.number_attr else len(attrs[arg.type_list_attr])
            groups.append(op.outputs[start : start + n])
            start += n
        return self._result_type(*groups)


def _is_small(value: Any) -> bool:
    """Whether all of what may be a number, a vector or an array of them has 32 bits."""
    ends: tuple[Any, ...] = ()
    try:
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "iu" and value.dtype.itemsize > 4 and value.size:
                ends = value.min(), value.max()
        elif isinstance(value, int):
            ends = (value,)
        elif isinstance(value, (list, tuple)) and value:
            ends = min(value), max(value)
        return all(-(2**31) <= end < 2**31 for end in ends)
    except (TypeError, ValueError):
        return True  # nothing is known of tensors


def _type_name(value: Any) -> str:
    from opdock.graph.nodes.convert import convert_to_tensor

    try:
        return str(convert_to_tensor(value)._dtype.base_dtype.name)
    except (TypeError, ValueError):
        return "<NOT CONVERTIBLE TO TENSOR>"


def _is_graph_error(error: Exception) -> bool:
    return "same graph" in str(error) or "finalized" in str(error)


def _about(op: str, text: str) -> TypeError:
    """An error in TensorFlow's words, which do not say at which op; the note below them does."""
    error = TypeError(text)
    error.add_note(f"The argument is one of op '{op}'.")
    return error


# ---------------------------------------------------------------- attribute values
def coerce_attr(op: str, attr: AttrDef, value: Any) -> Any:
    """`value` as the native value of `attr`; TypeError or ValueError in TF's words."""
    if attr.type.startswith("list("):
        if not isinstance(value, (list, tuple)) and not hasattr(value, "__iter__"):
            raise _about(op, f"Expected list for attr {attr.name}")
        items = [_coerce(op, attr, attr.type[5:-1], v) for v in value]
        if attr.minimum is not None and len(items) < attr.minimum:
            raise ValueError(
                f"Attr '{attr.name}' of '{op}' Op passed list of length {len(items)} less than "
                f"minimum {attr.minimum}."
            )
        return items
    out = _coerce(op, attr, attr.type, value)
    if attr.minimum is not None and out < attr.minimum:
        raise ValueError(
            f"Attr '{attr.name}' of '{op}' Op passed {out} less than minimum {attr.minimum}."
        )
    return out


def _coerce(op: str, attr: AttrDef, kind: str, value: Any) -> Any:
    if kind == "type":
        try:
            dtype = dtypes.as_dtype(value).base_dtype
        except TypeError:
            text = f"Expected DataType for argument '{attr.name}' not {value!r}."
            raise _about(op, text) from None
        if attr.allowed is not None and dtype not in attr.allowed:
            names = ", ".join(t.name for t in attr.allowed)
            raise _about(
                op,
                f"Value passed to parameter '{attr.name}' has DataType {dtype.name} not in list of "
                f"allowed values: {names}",
            )
        return dtype
    if kind == "bool":
        if not isinstance(value, (bool, np.bool_)):
            raise _about(op, f"Expected bool for argument '{attr.name}' not {value!r}.")
        return bool(value)
    if kind == "int":
        try:
            return int(value.__index__() if hasattr(value, "__index__") else int(value))
        except (TypeError, ValueError):
            raise _about(op, f"Expected int for argument '{attr.name}' not {value!r}.") from None
    if kind == "float":
        try:
            return float_attr(value)
        except (TypeError, ValueError):
            raise _about(op, f"Expected float for argument '{attr.name}' not {value!r}.") from None
    if kind == "string":
        return _coerce_string(op, attr, value)
    if kind == "shape":
        return shapes.as_shape(value)
    if kind == "tensor" and value is None:
        raise _about(
            op, f"Don't know how to convert None to a TensorProto for argument {attr.name}"
        )
    if kind == "tensor" and not isinstance(value, np.ndarray):
        from opdock.io.tensor_proto import make_ndarray

        return make_ndarray(value) if hasattr(value, "tensor_shape") else np.asarray(value)
    if kind == "func":
        if isinstance(value, (bool, int, float, type(None))):
            text = f"Don't know how to convert {value!r} to a func for argument {attr.name}"
            raise _about(op, text)
        # A function that is called by itself elsewhere knows its graph.
        return getattr(value, "function_graph", value)
    return value


def _coerce_string(op: str, attr: AttrDef, value: Any) -> str | bytes:
    if not isinstance(value, (str, bytes)):
        raise _about(op, f"Expected string for argument '{attr.name}' not {value!r}.")
    text: str | bytes = value
    if isinstance(value, bytes):
        try:
            text = value.decode()
        except UnicodeDecodeError:
            text = value
    if attr.allowed is not None and text not in attr.allowed:
        names = ", ".join(f'"{a}"' for a in attr.allowed)
        raise ValueError(
            f"Attr '{attr.name}' of '{op}' Op passed string '{value!s}' not in: {names}."
        )
    return text
