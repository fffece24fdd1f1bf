"""Functions that a model of `tf.saved_model.save` holds, called in the graph that is being built.

A call adds the function's body to the graph, with the call's arguments for its parameters, so it
is optimised and differentiated like anything else there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opdock import errors
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import copy_operations
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.variable import Variable
from opdock.ops.identity import identity
from opdock.saved_model.nested_structure_coder import StructureCoder
from opdock.util import nest

__all__ = ["ConcreteFunction", "RestoredFunction", "Signature", "add_body"]


def add_body(body: FuncGraph, arguments: Sequence[Tensor]) -> tuple[list[Tensor], list[Operation]]:
    """Adds a function's body to the default graph.

    Returns:
        Its results, which wait for its effects, and the operations that are the effects.
    """
    graph = get_default_graph()
    given = [t if t.graph is graph else graph._adopt(t) for t in arguments]
    values: dict[Tensor, Tensor] = dict(zip(body.inputs, given, strict=True))
    made = copy_operations(body, body.needed(), values)
    effects = [made[op] for op in body.targets if op in made]
    results = [values[t] for t in body.outputs]
    if effects:
        with control_dependencies(effects):
            results = [identity(t) for t in results]
    return results, effects


class ConcreteFunction(Trackable):
    """A function for arguments of fixed types.

    Args:
        name: its name in the model's library.
        proto: the `SavedConcreteFunction`.
        body: gives the body; it is asked at the first call.
        captures: gives what the function uses from outside, in the order of its last parameters.
    """

    def __init__(
        self, name: str, proto: Any, body: Callable[[], FuncGraph],
        captures: Callable[[], list[Tensor]],
    ) -> None:  # fmt: skip
        self.name = name
        self._body, self._captures = body, captures
        coder = StructureCoder()
        self.structured_input_signature = coder.decode_proto(proto.canonicalized_input_signature)
        self.structured_outputs = coder.decode_proto(proto.output_signature)

    @property
    def inputs(self) -> list[Tensor]:
        """The parameters of the body, captures included."""
        return list(self._body().inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The results in the body."""
        return list(self._body().outputs)

    @property
    def captured_inputs(self) -> list[Tensor]:
        """What the function uses from outside."""
        return self._captures()

    def apply(self, values: Any) -> Any:
        """The results for arguments in the structure of the signature.

        Raises:
            TypeError, ValueError: an argument does not convert to the type of its parameter.
        """
        given = list(_tensors(self.structured_input_signature, values))
        with name_scope(_plain(self.name)):
            results, effects = add_body(self._body(), [*given, *self._captures()])
        found = iter(results)
        flat = nest.flatten(self.structured_outputs, expand_composites=True)
        if not flat or all(leaf is None for leaf in flat):
            return effects[-1] if effects and not results else self.structured_outputs
        return nest.pack_sequence_as(
            self.structured_outputs,
            [next(found) if isinstance(leaf, TensorSpec) else leaf for leaf in flat],
            expand_composites=True,
        )


class Signature(ConcreteFunction):
    """A function that takes its arguments by name.

    Args:
        bare: the `SavedBareConcreteFunction`.
    """

    def __init__(self, bare: Any, *args: Any) -> None:
        super().__init__(bare.concrete_function_name, *args)
        self._names = list(bare.argument_keywords)
        self._positional = bare.allowed_positional_arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results.

        Raises:
            TypeError: an argument is missing, or there is none of a name or place.
        """
        allowed = max(self._positional, 1) if len(self._names) == 1 else self._positional
        given = {**dict(zip(self._names, args, strict=False)), **kwargs}
        if (
            len(args) > allowed
            or len(given) != len(args) + len(kwargs)
            or sorted(given) != sorted(self._names)
        ):
            raise TypeError(
                f"{_plain(self.name)} takes {self._names}, got "
                f"{[*self._names[: len(args)], *sorted(kwargs)]}"
            )
        positional, named = self.structured_input_signature
        if named:
            return self.apply(((), {name: given[name] for name in named}))
        flat = [given[name] for name in self._names]
        return self.apply((nest.pack_sequence_as(positional, flat, expand_composites=True), {}))


class RestoredFunction(Trackable):
    """A Python function as the concrete functions that were traced of it.

    Args:
        spec: the `FunctionSpec` of its arguments.
        concrete: those functions.
    """

    def __init__(self, spec: Any, concrete: Sequence[ConcreteFunction]) -> None:
        self.concrete_functions = list(concrete)
        self._arguments = StructureCoder().decode_proto(spec.fullargspec)
        self._is_method = spec.is_method

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the first concrete function that takes these arguments.

        Raises:
            ValueError: there is none.
        """
        values = self._canonical(args, kwargs)
        # Tensors first: a number may be an argument of Python's as well as a tensor.
        for converting in (False, True):
            for function in self.concrete_functions:
                if _fits(function.structured_input_signature, values, converting):
                    return function.apply(values)
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
        for name in names[len(args) :]:
            if name in left:
                found.append(left.pop(name))
            elif name in defaults:
                found.append(defaults[name])
            else:
                break
        return tuple(found), {**(spec.kwonlydefaults or {}), **left}


def _tensors(signature: Any, values: Any) -> Iterator[Tensor]:
    """The tensors that arguments are, in the order of the parameters."""
    parts = nest.flatten_up_to(signature, values, check_types=False)
    for spec, value in zip(nest.flatten(signature), parts, strict=True):
        if isinstance(spec, TensorSpec):
            yield convert_to_tensor(value, spec.dtype)
        elif isinstance(spec, TypeSpec):
            yield from nest.flatten(value, expand_composites=True)


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
    if not isinstance(value, Tensor | Variable):
        if not converting or value is None:
            return False
        try:
            value = convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError, errors.OpError):
            return False
    same = value.dtype.base_dtype is spec.dtype.base_dtype
    return same and bool(spec.shape.is_compatible_with(value.shape))


def _plain(name: str) -> str:
    """A function's name without what TensorFlow puts around the one in the program."""
    bare = name.removeprefix("__inference_").removeprefix("signature_wrapper_").strip("_")
    return bare.rpartition("_")[0] or bare or "function"
