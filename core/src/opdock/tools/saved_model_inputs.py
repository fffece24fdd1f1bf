"""Inputs of a model as they are written on a command line: files, expressions, Examples."""

from __future__ import annotations

import ast
import operator
import re
import warnings
from typing import Any, Final

import numpy as np

from opdock.io import protos
from opdock.io.array_files import Arrays, array_of
from opdock.syntax import expression_of

__all__ = [
    "load_inputs_from_input_arg_string", "preprocess_input_examples_arg_string",
    "preprocess_input_exprs_arg_string", "preprocess_inputs_arg_string",
]  # fmt: skip

_FILE = re.compile(r"([^=]+)=([^\[\]]+)(?:\[([^\[\]]+)\])?$")
_PICKLE: Final = b"\x80"
"""What a pickle begins with."""


def preprocess_inputs_arg_string(inputs_str: str) -> dict[str, tuple[str, str | None]]:
    """Splits "key=file;key=file[name]".

    Returns:
        File and name, or None, by key.

    Raises:
        RuntimeError: the text has another form.
    """
    found = {}
    for text in filter(bool, inputs_str.split(";")):
        match = _FILE.match(text)
        if match is None:
            raise RuntimeError(
                f'--inputs "{text}" format is incorrect. Please follow'
                '"<input_key>=<filename>", or"<input_key>=<filename>[<variable_name>]"'
            )
        found[match.group(1)] = (match.group(2), match.group(3))
    return found


def preprocess_input_exprs_arg_string(input_exprs_str: str) -> dict[str, Any]:
    """Computes "key=expression;key=expression".

    Raises:
        RuntimeError: the text has another form.
        ValueError: an expression is more than literals, arithmetic and NumPy.
    """
    found = {}
    for text in filter(bool, input_exprs_str.split(";")):
        if "=" not in text:
            raise RuntimeError(
                f'--input_exprs "{input_exprs_str}" format is incorrect. Please follow'
                '"<input_key>=<python expression>"'
            )
        key, _, expression = text.partition("=")
        found[key] = evaluate(expression)
    return found


def preprocess_input_examples_arg_string(input_examples_str: str) -> dict[str, Any]:
    """Computes "key=[{feature: [values]}]", one dictionary for each Example.

    Returns:
        Lists of serialized Examples by key.

    Raises:
        ValueError: a value is no list of dictionaries of lists, or of a type that no feature has.
    """
    found = preprocess_input_exprs_arg_string(input_examples_str)
    for key, examples in found.items():
        if not isinstance(examples, list):
            raise ValueError(
                "tf.Example input must be a list of dictionaries, but"
                f' "{examples}" is {type(examples)}'
            )
        found[key] = [_example(features) for features in examples]
    return found


def _example(features: dict[str, Any]) -> bytes:
    example = protos.Example()
    for name, values in features.items():
        if not isinstance(values, list):
            raise ValueError(
                f'feature value must be a list, but {name}: "{values}" is {type(values)}'
            )
        feature = example.features.feature[name]
        first = values[0] if values else None
        if isinstance(first, float):
            feature.float_list.value.extend(values)
        elif isinstance(first, str | bytes):
            texts = [v.encode() if isinstance(v, str) else v for v in values]
            feature.bytes_list.value.extend(texts)
        elif isinstance(first, int):
            feature.int64_list.value.extend(values)
        else:
            raise ValueError(
                f"Type {type(first)} for value {first} is not supported for tf.train.Feature."
            )
    data: bytes = example.SerializeToString()
    return data


def load_inputs_from_input_arg_string(
    inputs_str: str, input_exprs_str: str, input_examples_str: str
) -> dict[str, Any]:
    """The values of all inputs; expressions take precedence over files, Examples over both.

    Raises:
        RuntimeError: a text has another form, or a file has not the array that it is to have.
        ValueError: a file holds pickled objects, or an expression is not allowed.
    """
    feeds: dict[str, Any] = {}
    for key, (path, name) in preprocess_inputs_arg_string(inputs_str).items():
        feeds[key] = _array(path, name)
    for key, value in preprocess_input_exprs_arg_string(input_exprs_str).items():
        if key in feeds:
            warnings.warn(
                f"input_key {key} has been specified with both --inputs and --input_exprs options."
                " Value in --input_exprs will be used.",
                stacklevel=2,
            )
        feeds[key] = value
    for key, value in preprocess_input_examples_arg_string(input_examples_str).items():
        if key in feeds:
            warnings.warn(
                f"input_key {key} has been specified in multiple options. Value in --input_examples"
                " will be used.",
                stacklevel=2,
            )
        feeds[key] = value
    return feeds


def _array(path: str, name: str | None) -> Any:
    # A pickled file may run anything, so it is refused.
    with open(path, "rb") as file:
        if not file.read(2).startswith(b"PK"):
            file.seek(0)
            data = file.read()
            if data.startswith(_PICKLE):
                raise ValueError(
                    f"{path} holds pickled Python objects, and reading them could run anything: "
                    "write arrays with numpy.save, or several with numpy.savez"
                )
            if name:
                warnings.warn(
                    f'Input file {path} contains a single ndarray. Name key "{name}" ignored.',
                    stacklevel=3,
                )
            return array_of(data)
    with Arrays(path) as arrays:
        if name is None and len(arrays) != 1:
            raise RuntimeError(
                f"Input file {path} contains more than one ndarrays. Please specify the name of"
                " ndarray to use."
            )
        wanted = next(iter(arrays)) if name is None else name
        if wanted not in arrays:
            raise RuntimeError(f'Input file {path} does not contain variable with name "{wanted}".')
        return arrays[wanted]


# ---------------------------------------------------------------- expressions
_BINARY: Final[dict[type[ast.operator], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.MatMult: operator.matmul,
}  # fmt: skip
_UNARY: Final[dict[type[ast.unaryop], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


def evaluate(expression: str) -> Any:
    """The value of a Python expression of literals, arithmetic and NumPy, which is `np`.

    Raises:
        ValueError: it is something else.
    """
    try:
        return _value(expression_of(expression.strip()))
    except SyntaxError as e:
        raise ValueError(f"'{expression}' is no Python expression: {e}") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.List(elts=items):
            return [_value(i) for i in items]
        case ast.Tuple(elts=items):
            return tuple(_value(i) for i in items)
        case ast.Dict(keys=keys, values=values):
            return {_value(k): _value(v) for k, v in zip(keys, values, strict=True) if k}
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=binary, right=right) if type(binary) in _BINARY:
            return _BINARY[type(binary)](_value(left), _value(right))
        case ast.Name(id="np" | "numpy"):
            return np
        case ast.Attribute(value=owner, attr=name) if not name.startswith("_"):
            return getattr(_value(owner), name)
        case ast.Subscript(value=owner, slice=index):
            return _value(owner)[_value(index)]
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if part is None else _value(part) for part in (lower, upper, step)))
        case ast.Call(func=func, args=args, keywords=keywords):
            named = {k.arg: _value(k.value) for k in keywords if k.arg}
            return _value(func)(*(_value(a) for a in args), **named)
    raise ValueError(
        f"'{ast.unparse(node)}' is neither a literal nor arithmetic nor a call of NumPy's"
    )
