"""The functions that a model of objects offers by name, and as signatures of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.typespec import TensorSpec, TypeSpec
from opdock.graph.variables.trackable import Trackable
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.composed.function import Function
from opdock.ops.composed.tracing import traced
from opdock.saved_model import signature_constants as names
from opdock.util import nest

__all__ = ["SIGNATURES", "SignatureMap", "canonical_signatures", "function_to_export"]

SIGNATURES: Final = "signatures"
_DEFAULT: Final = "_default_save_signature"


class SignatureMap(Mapping[str, ConcreteFunction], Trackable):
    """The signatures of a model, by name.

    Args:
        functions: those.
    """

    _object_identifier = "signature_map"
    _is_signature_map = True

    def __init__(self, functions: Mapping[str, ConcreteFunction]) -> None:
        self._functions = dict(functions)

    def _add_signature(self, name: str, function: ConcreteFunction) -> None:
        self._functions[name] = function

    def __getitem__(self, key: str) -> ConcreteFunction:
        return self._functions[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __repr__(self) -> str:
        return f"_SignatureMap({self._functions})"

    __hash__ = object.__hash__


def _signature_of(function: Any) -> ConcreteFunction | None:
    if isinstance(function, Function) and function.input_signature is not None:
        return function.get_concrete_function()
    return function if isinstance(function, ConcreteFunction) else None


def function_to_export(functions: Mapping[str, Any]) -> Any:
    """The one function among those of an object that can be its signature, or None."""
    if _DEFAULT in functions:
        return functions[_DEFAULT]
    found = []
    for function in functions.values():
        concrete = _signature_of(function)
        if concrete is not None and concrete.outputs and _is_flat(concrete.structured_outputs):
            found.append(concrete)
    return found[0] if len(found) == 1 else None


def _is_flat(outputs: Any) -> bool:
    if isinstance(outputs, Mapping):
        return all(isinstance(value, TensorSpec) for value in outputs.values())
    if isinstance(outputs, (list, tuple)):
        return all(isinstance(value, TypeSpec) for value in outputs)
    return True


def canonical_signatures(signatures: Any) -> dict[str, ConcreteFunction]:
    """Signatures as functions that give dictionaries of tensors.

    Args:
        signatures: a function, or several by name.

    Raises:
        ValueError: one has no signature, or gives what is nested.
    """
    if signatures is None:
        return {}
    if not isinstance(signatures, Mapping):
        signatures = {names.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    return {key: _wrapped(key, function) for key, function in signatures.items()}


def _wrapped(key: str, function: Any) -> ConcreteFunction:
    concrete = _signature_of(function)
    if concrete is None:
        raise ValueError(
            f"Expected a TensorFlow function to generate a signature for, but got {function}. Only "
            "`tf.functions` with an input signature or concrete functions can be used as a "
            "signature."
        )
    keywords = concrete._arg_keywords or []
    specs = {
        name: TensorSpec(tensor.shape, tensor.dtype.base_dtype, name)
        for name, tensor in zip(keywords, concrete.inputs, strict=False)
    }
    wrapped = traced(_by_name(key, concrete), "signature_wrapper", (), (), specs)
    wrapped._num_positional_args = int(len(wrapped._arg_keywords or ()) == 1)
    return wrapped


def _by_name(key: str, concrete: ConcreteFunction) -> Callable[..., dict[str, Tensor]]:
    def signature_wrapper(**tensors: Any) -> dict[str, Tensor]:
        return _normal(concrete(**tensors), concrete.name, key)

    return signature_wrapper


def _normal(outputs: Any, function_name: str, key: str) -> dict[str, Tensor]:
    """What a function gave as a dictionary of tensors."""
    if isinstance(outputs, Mapping):
        for name, value in outputs.items():
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"Got a dictionary containing non-Tensor value {value} for key {name} in the "
                    f"output of the function {function_name} used to generate a SavedModel "
                    "signature. Dictionaries outputs for functions used as signatures should have "
                    "one Tensor output per string key."
                )
        return dict(outputs)
    if outputs is None or isinstance(outputs, Operation):  # What it does is all that it gives.
        return {}
    parts = outputs if isinstance(outputs, Sequence) else [outputs]
    if not all(len(nest.flatten(part)) == 1 and not _is_nested(part) for part in parts):
        raise ValueError(
            f"Got non-flat outputs '{outputs}' from '{function_name}' for SavedModel signature "
            f"'{key}'. Signatures have one Tensor per output, so to have predictable names Python "
            "functions used to generate these signatures should avoid outputting Tensors in "
            "nested structures."
        )
    return {f"output_{i}": part for i, part in enumerate(parts)}


def _is_nested(part: Any) -> bool:
    return isinstance(part, (list, tuple, dict))
