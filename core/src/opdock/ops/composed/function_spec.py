"""What a Python function's arguments are, for a function that is traced of it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from opdock import dtypes, errors
from opdock.graph.nodes.composite import CompositeTensor
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.variable import Variable
from opdock.shapes import TensorShape
from opdock.util import nest
from opdock.util.decorators import unwrap
from opdock.util.inspecting import getfullargspec

__all__ = ["FunctionSpec", "described"]

_PLAIN = (int, float, bool, str, bytes, type(None), dtypes.DType, TensorShape, TypeSpec)


class FunctionSpec:
    """The parameters of a Python function.

    Args:
        python_function: the function.
        input_signature: what its arguments are said to be, or None.
        is_method: whether the first parameter is an object that calls leave out.

    Attributes:
        fullargspec: the parameters as `inspect.getfullargspec` gives them, without annotations.
    """

    def __init__(
        self, python_function: Callable[..., Any], input_signature: Any, is_method: bool
    ) -> None:
        spec = getfullargspec(python_function)._replace(annotations={})
        _, called = unwrap(python_function)
        if isinstance(called, functools.partial):
            spec = _without(spec, called.keywords)
        self.fullargspec = spec
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self.is_method = is_method

    @property
    def names(self) -> list[str]:
        """The parameters that can be given by position."""
        return self.fullargspec.args[1 if self.is_method else 0 :]

    @property
    def arg_names(self) -> list[str]:
        """The parameters that have names."""
        return [*self.names, *self.fullargspec.kwonlyargs]

    def canonical(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments in the order of the parameters, defaults filled in.

        Raises:
            ValueError: they do not fit the input signature.
        """
        left, found = dict(kwargs), list(args)
        defaults = dict(
            zip(self.names[::-1], (self.fullargspec.defaults or ())[::-1], strict=False)
        )
        for name in self.names[len(found) :]:
            if name in left:
                found.append(left.pop(name))
            elif name in defaults and (self.input_signature is None or self._is_free(len(found))):
                found.append(defaults[name])
            else:
                break
        named = {**(self.fullargspec.kwonlydefaults or {}), **left}
        if self.input_signature is not None:
            return self._fitting(found), {}
        return tuple(found), named

    def _is_free(self, place: int) -> bool:
        signature = self.input_signature
        return signature is not None and place < len(signature)

    def _fitting(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments as tensors of the input signature."""
        signature = self.input_signature
        assert signature is not None
        try:
            parts = nest.flatten_up_to(signature, tuple(given), check_types=False)
        except (TypeError, ValueError):
            raise ValueError(
                "Structure of Python function inputs does not match input_signature:\n"
                f"  inputs: {tuple(given)}\n  input_signature: {signature}"
            ) from None
        found = []
        for value, spec in zip(parts, nest.flatten(signature), strict=True):
            if isinstance(spec, TypeSpec) and not isinstance(spec, TensorSpec):
                if not spec.is_compatible_with(value):
                    raise _unfit(given, signature)
                found.append(value)
                continue
            if not _may_be(spec, value):
                raise _unfit(given, signature)
            tensor = value
            if not isinstance(value, TypeSpec):
                try:
                    tensor = convert_to_tensor(value, dtype=spec.dtype)
                except (TypeError, ValueError, errors.OpError):
                    raise _unfit(given, signature) from None
            if not tensor.shape.is_compatible_with(spec.shape):
                raise _unfit(given, signature)
            found.append(tensor)
        packed: tuple[Any, ...] = nest.pack_sequence_as(signature, found)
        return packed


def _may_be(spec: Any, value: Any) -> bool:
    """Whether a tensor has the type of a spec; what is none is yet to be converted."""
    dtype = getattr(value, "dtype", None)
    if not isinstance(value, Tensor | Variable | TypeSpec):
        return True
    return dtype is None or dtypes.as_dtype(dtype).base_dtype is dtypes.as_dtype(spec.dtype)


def _unfit(given: Any, signature: Any) -> ValueError:
    return ValueError(
        "Python inputs incompatible with input_signature:\n"
        f"  inputs: {tuple(given)}\n  input_signature: {signature}"
    )


def described(value: Any) -> Any:
    """An argument with specs in place of tensors, composites and arrays; None for other kinds.

    Numbers, strings and types stay; a function is traced for each value of these.
    """
    flat = list(_described(nest.flatten(value)))
    if len(flat) != len(nest.flatten(value)):
        return None
    return nest.pack_sequence_as(value, flat)


def _described(flat: Sequence[Any]) -> Iterator[Any]:
    for leaf in flat:
        if isinstance(leaf, Variable):
            return
        if isinstance(leaf, Tensor):
            yield TensorSpec(leaf.shape, leaf.dtype.base_dtype)
        elif isinstance(leaf, (np.ndarray, np.generic)):
            yield TensorSpec(leaf.shape, dtypes.as_dtype(leaf.dtype))
        elif isinstance(leaf, CompositeTensor):
            yield leaf._type_spec
        elif isinstance(leaf, _PLAIN):
            yield leaf
        else:
            return


def _without(spec: inspect.FullArgSpec, given: Mapping[str, Any]) -> inspect.FullArgSpec:
    """The parameters without those that a `functools.partial` has given by name."""
    defaults = dict(zip(spec.args[::-1], (spec.defaults or ())[::-1], strict=False))
    args = [name for name in spec.args if name not in given]
    return spec._replace(
        args=args,
        defaults=tuple(defaults[name] for name in args if name in defaults) or None,
        kwonlyargs=[name for name in spec.kwonlyargs if name not in given],
        kwonlydefaults={k: v for k, v in (spec.kwonlydefaults or {}).items() if k not in given},
    )
