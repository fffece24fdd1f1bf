"""Functions that a model of `tf.saved_model.save` holds, called in the graph that is being built.

A call adds the function's body to the graph, with the call's arguments for its parameters, so it
is optimised and differentiated like anything else there.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from inspect import FullArgSpec
from typing import Any, NamedTuple

from opdock import errors
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.variable import Variable
from opdock.ops.composed.concrete_function import ConcreteFunction, plain_name, scope_of
from opdock.ops.composed.function import Function
from opdock.ops.composed.tracing import keywords
from opdock.saved_model.nested_structure_coder import StructureCoder
from opdock.util import nest
from opdock.util.decorators import TFDecorator

__all__ = ["RestoredFunction", "restored", "restored_signature"]


def restored(name: str, proto: Any, body: Any, captures: Any) -> ConcreteFunction:
    """A function of a model.

    Args:
        name: its name in the model's library.
        proto: the `SavedConcreteFunction`.
        body: gives the body; it is asked when it is needed first.
        captures: gives what the function uses from outside, in the order of its last parameters.
    """
    coder = StructureCoder()
    return ConcreteFunction(
        name, body, captures, coder.decode_proto(proto.canonicalized_input_signature),
        coder.decode_proto(proto.output_signature),
    )  # fmt: skip


def restored_signature(bare: Any, proto: Any, body: Any, captures: Any) -> ConcreteFunction:
    """A function of a model that takes its tensors by name, as a `SavedBareConcreteFunction`."""
    function = restored(bare.concrete_function_name, proto, body, captures)
    function._arg_keywords = list(bare.argument_keywords)
    function._num_positional_args = bare.allowed_positional_arguments
    return function


class RestoredSpec(NamedTuple):
    """The parameters of a function of a model, as a `FunctionSpec` says them."""

    fullargspec: Any
    is_method: bool
    input_signature: Any

    @property
    def arg_names(self) -> list[str]:
        """The parameters that have names."""
        args: list[str] = list(self.fullargspec.args)[1 if self.is_method else 0 :]
        return [*args, *self.fullargspec.kwonlyargs]


class RestoredFunction(Function, Trackable):
    """A Python function as the concrete functions that were traced of it.

    Args:
        spec: the `FunctionSpec` of its arguments.
        concrete: those functions.
    """

    def __init__(self, spec: Any, concrete: Sequence[ConcreteFunction]) -> None:
        coder = StructureCoder()
        told = spec.input_signature
        signature = coder.decode_proto(told) if told.WhichOneof("kind") else None
        self.concrete_functions = list(concrete)
        self._arguments = _full_arg_spec(coder.decode_proto(spec.fullargspec))
        self._is_method = spec.is_method
        name = scope_of(plain_name(concrete[0].name)) if concrete else "function"
        super().__init__(self._apply, name, signature)
        # By this `tf_inspect` finds the arguments of the function that was saved.
        self._tf_decorator = TFDecorator("tf.function", self._apply, "", self._arguments)

    @functools.cached_property
    def function_spec(self) -> RestoredSpec:  # type: ignore[override]
        """The parameters."""
        return RestoredSpec(self._arguments, self._is_method, self.input_signature)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the first concrete function that takes these arguments.

        Raises:
            ValueError: there is none.
        """
        return self._apply(*args, **kwargs)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        values = self._canonical(args, kwargs)
        return self._fitting(values).apply(values)

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The first concrete function that takes arguments of these types.

        Args:
            *args: tensors or specs in their place, and values of Python; none for the only one.
            **kwargs: the same, by name.

        Raises:
            ValueError: there is none.
        """
        only = not args and not kwargs and len(self.concrete_functions) == 1
        found = self.concrete_functions[0] if only else self._fitting(self._canonical(args, kwargs))
        if found._arg_keywords is None:
            self._name_arguments(found)
        return found

    def _name_arguments(self, function: ConcreteFunction) -> None:
        """Says how a concrete function is called, which a model tells of signatures alone."""
        given, named = function.structured_input_signature
        args = [*zip(self.function_spec.arg_names, given, strict=False), *sorted(named.items())]
        function._arg_keywords = keywords(
            getattr(leaf, "name", None) or name
            for name, arg in args for leaf in nest.flatten(arg, expand_composites=True)
            if isinstance(leaf, TensorSpec)
        )  # fmt: skip
        tensors = itertools.takewhile(lambda a: isinstance(a, TensorSpec), given)
        function._num_positional_args = len(list(tensors))

    def _list_all_concrete_functions_for_serialization(self) -> list[ConcreteFunction]:
        return self.concrete_functions

    def _fitting(self, values: Any) -> ConcreteFunction:
        # Tensors first: a number may be an argument of Python's as well as a tensor.
        for converting in (False, True):
            for function in self.concrete_functions:
                if _fits(function.structured_input_signature, values, converting):
                    return function
        if self.input_signature is not None:
            raise ValueError(
                f"Python inputs incompatible with input_signature:\n  inputs: {values[0]}\n"
                f"  input_signature: {self.input_signature}"
            )
        tried = "\n".join(f"  {f.structured_input_signature}" for f in self.concrete_functions)
        raise ValueError(
            "Could not find matching function to call loaded from the SavedModel. Got:\n  "
            f"{values}\nExpected one of the following {len(self.concrete_functions)} option(s), "
            f"each as (positional arguments, keyword arguments):\n{tried}"
        )

    def _canonical(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Arguments as signatures have them: in the order of the parameters, defaults filled in."""
        spec = self._arguments
        names = list(spec.args)[1 if self._is_method else 0 :]
        left = dict(kwargs)
        found = list(args)
        defaults = dict(zip(names[::-1], list(spec.defaults or ())[::-1], strict=False))
        if self.input_signature is not None:
            # It says which are arguments: the others have the values that they were traced with.
            names = names[: len(self.input_signature)]
        for name in names[len(args) :]:
            if name in left:
                found.append(left.pop(name))
            elif name in defaults:
                found.append(defaults[name])
            else:
                break
        if self.input_signature is None:
            left = {**(spec.kwonlydefaults or {}), **left}
        return tuple(found), left


def _full_arg_spec(saved: Any) -> FullArgSpec:
    """What `inspect.getfullargspec` gave of the function that was saved.

    Raises:
        DataLossError: it is something else.
    """
    if not hasattr(saved, "_asdict"):
        raise errors.DataLossError(
            None, None, f"A function of the model says of its arguments no more than {saved!r}."
        )
    told = saved._asdict()
    return FullArgSpec(
        list(told.get("args") or ()), told.get("varargs"), told.get("varkw"), told.get("defaults"),
        list(told.get("kwonlyargs") or ()), told.get("kwonlydefaults"), {},
    )  # fmt: skip


def _fits(spec: Any, value: Any, converting: bool) -> bool:
    """Whether an argument, or a structure of them, is what a signature has at its place."""
    if isinstance(spec, TensorSpec):
        return _fits_tensor(spec, value, converting)
    if isinstance(spec, TypeSpec):
        return bool(spec.is_compatible_with(value))
    if isinstance(spec, Mapping):
        return (
            isinstance(value, Mapping)
            and spec.keys() == value.keys()
            and all(_fits(spec[k], value[k], converting) for k in spec)
        )
    if isinstance(spec, (list, tuple)):
        return (
            isinstance(value, (list, tuple))
            and len(spec) == len(value)
            and all(_fits(s, v, converting) for s, v in zip(spec, value, strict=True))
        )
    if isinstance(value, Tensor | Variable):
        return False
    return type(spec) is type(value) and bool(spec == value)


def _fits_tensor(spec: TensorSpec, value: Any, converting: bool) -> bool:
    if not isinstance(value, Tensor | Variable | TensorSpec):
        if not converting or value is None:
            return False
        try:
            value = convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError, errors.OpError):
            return False
    same = value.dtype.base_dtype is spec.dtype.base_dtype
    return same and bool(spec.shape.is_compatible_with(value.shape))
