"""Printing from graphs: `tf.Print`, `tf.print` and `tf.strings.format`."""

from __future__ import annotations

import builtins
import os
import sys
from typing import Any

from opdock import dtypes, shapes
from opdock.graph.nodes.composite import SparseTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Operation, Tensor, has_graph
from opdock.ops.registry import ShapeSig, define_op, keeps_slices
from opdock.shapes import Shape
from opdock.util import nest

__all__ = ["Print", "print"]

print_op = define_op(
    "Print", "input: T, data: U -> output: T",
    'T: type, U: list(type) >= 0, message: string = "", first_n: int = -1, summarize: int = 3',
    stateful=True,
)  # fmt: skip
print_v2_op = define_op(
    "PrintV2", "input: string", 'output_stream: string = "stderr", end: string = "\n"',
    stateful=True,
).not_differentiable()  # fmt: skip
string_format_op = define_op(
    "StringFormat", "inputs: T -> output: string",
    'T: list(type) >= 0, template: string = "%s", placeholder: string = "%s", summarize: int = 3',
).not_differentiable()  # fmt: skip


@print_op.shape
def _print_shape(sig: ShapeSig) -> Shape:
    return sig.shapes[0]


@print_op.gradient
@keeps_slices
def _print_gradient(op: Operation, grad: Tensor) -> list[Any]:
    return [grad] + [None] * (len(op.inputs) - 1)


@print_v2_op.shape
def _print_v2_shape(sig: ShapeSig) -> list[Shape]:
    shapes.with_rank(sig.shapes[0], 0)
    return []


@string_format_op.shape
def _string_format_shape(sig: ShapeSig) -> Shape:
    template, placeholder = sig.attrs["template"], sig.attrs["placeholder"]
    count = template.count(placeholder)
    if count != len(sig.shapes):
        raise ValueError(
            f"num placeholders in template and num inputs must match: {count} vs. {len(sig.shapes)}"
        )
    return ()


@extensible
def Print(
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Passes `input_` on, and prints `data` to standard error whenever it is computed.

    Args:
        input_: a tensor.
        data: a list of tensors to print.
        message: printed before the data.
        first_n: print only so many times; always by default.
        summarize: print only so many elements of each tensor, 3 by default.
        name: a name for the operation.

    Returns:
        `input_`, after the printing.
    """
    return print_op(  # type: ignore[no-any-return]
        input_, list(data), message=message, first_n=first_n, summarize=summarize, name=name
    )


@extensible
def string_format(
    template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Tensor:
    """Tensors in a text.

    Args:
        template: the text.
        inputs: a tensor, or a list of them: one for each placeholder.
        placeholder: what stands in the template where a tensor goes.
        summarize: so many elements at both ends of each axis are written; -1 for all.
        name: a name for the operation.

    Returns:
        A scalar string tensor.

    Raises:
        ValueError: the numbers of placeholders and tensors differ.
    """
    tensors = [inputs] if isinstance(inputs, Tensor) or has_graph(inputs) else list(inputs)
    count = template.count(placeholder)
    if count != len(tensors):
        raise ValueError(
            f"{count} placeholder(s) in template does not match {len(tensors)} tensor(s) provided "
            "as input"
        )
    return string_format_op(  # type: ignore[no-any-return]
        tensors, template=template, placeholder=placeholder, summarize=summarize, name=name
    )


@extensible
def print(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that prints tensors and other values.

    Args:
        *inputs: tensors, Python values and structures of them.
        output_stream: `sys.stderr` (the default), `sys.stdout`, a logging function of
            `tf.logging` or "file://PATH", to which text is appended.
        summarize: so many elements at both ends of each axis are printed, 3 by default; -1 for
            all.
        sep: between inputs, " " by default.
        end: at the end, a new line by default.
        name: a name for the operation.

    Returns:
        The operation; run it, or make others depend on it.

    Raises:
        ValueError: a keyword or the stream is unknown.
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    summarize = kwargs.pop("summarize", 3)
    separator, end = kwargs.pop("sep", " "), kwargs.pop("end", os.linesep)
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    texts = [_text(value) for value in inputs]
    template = separator.join(t for t, _ in texts)
    tensors = [tensor for _, found in texts for tensor in found]
    if (
        template == _MARK
        and tensors[0].dtype.base_dtype is dtypes.string
        and (tensors[0].raw_shape == ())
    ):
        message = tensors[0]
    else:
        message = string_format_op(
            tensors, template=template, placeholder=_MARK, summarize=summarize,
            name=f"{name}_format" if name else None,
        )  # fmt: skip
    return print_v2_op(message, output_stream=_stream(stream), end=end, name=name)  # type: ignore[no-any-return]


# A text that no template has, in place of each tensor.
_MARK = "{\ue000}"


def _text(value: Any) -> tuple[str, list[Tensor]]:
    if has_graph(value) or (nest.is_sequence(value) and _tensors_in(value)):
        tensors: list[Tensor] = []
        text = _structure(value, tensors)
        return text, tensors
    return str(value), []


def _tensors_in(value: Any) -> builtins.bool:
    return any(has_graph(v) for v in nest.flatten(value))


def _structure(value: Any, tensors: list[Tensor]) -> str:
    if isinstance(value, SparseTensor):
        tensors += [value.indices, value.values, value.dense_shape]
        return f"'SparseTensor(indices={_MARK}, values={_MARK}, shape={_MARK})'"
    if has_graph(value):
        tensors.append(convert_to_tensor(value))
        return _MARK
    if isinstance(value, dict):
        # In the order in which `pprint` has them, whatever their types.
        keys = sorted(value, key=lambda k: (type(k).__name__, k if isinstance(k, str) else repr(k)))
        return "{" + ", ".join(f"{k!r}: {_structure(value[k], tensors)}" for k in keys) + "}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_structure(v, tensors) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


# What the functions of `tf.logging` are called, and the stream that stands for each.
_LOGS = {"info": "log(info)", "warning": "log(warning)", "warn": "log(warning)",
         "error": "log(error)"}  # fmt: skip


def _stream(stream: Any) -> str:
    names = {id(sys.stdout): "stdout", id(sys.stderr): "stderr",
             id(sys.__stdout__): "stdout", id(sys.__stderr__): "stderr"}  # fmt: skip
    known = ("stdout", "stderr", *_LOGS.values())
    if isinstance(stream, str) and (stream in known or stream.startswith("file://")):
        return stream
    found = names.get(id(stream))
    if found is None and callable(stream):
        found = _LOGS.get(getattr(stream, "__name__", ""))
    if found is None:
        raise ValueError(
            f"Unknown output stream, logging level, or file.{stream!r}: it must be sys.stdout, "
            "sys.stderr, tf.logging.info, tf.logging.warning, tf.logging.error or 'file://PATH'"
        )
    return found
