"""`tf.function` in a graph: a Python function whose operations run in the order it says."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MethodType
from typing import Any

from opdock.graph.control.function_op import root_of
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import made_outside, name_scope
from opdock.graph.variables.tracked_attributes import SavedFunction
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.composed.effects import after, in_order
from opdock.ops.composed.function_spec import FunctionSpec, described
from opdock.ops.composed.function_traces import Traces, as_tensors, functions_run_eagerly
from opdock.ops.composed.tracing import traced
from opdock.ops.rewriting.calls import converted_call
from opdock.ops.rewriting.status import ConversionOptions
from opdock.ops.rewriting.variables import with_tensors
from opdock.ops.support.control_mode import inside_function
from opdock.util import nest
from opdock.util.decorators import TFDecorator
from opdock.util.inspecting import ismethod

__all__ = ["Function", "function"]


@dataclass
class _Known:
    """What is known of a function, or of a method of one object.

    Attributes:
        variables: those that it has made; None before the first call.
        signatures: what it was called with.
        traced: what it was traced for, in which graph, and the result.
        calls: what it was traced for by calls that are operations.
        first: what it was traced for first.
    """

    variables: list[Any] | None = None
    signatures: list[Any] = field(default_factory=list)
    traced: list[tuple[Any, Any, ConcreteFunction]] = field(default_factory=list)
    calls: Traces = field(default_factory=Traces)
    first: ConcreteFunction | None = None


class _Signature:
    """The signature of what a `Function` calls; the class itself has one of its own."""

    def __get__(self, function: Function | None, owner: Any = None) -> inspect.Signature:
        if function is None:
            raise AttributeError("__signature__")
        found = inspect.signature(function.python_function)
        bound = list(found.parameters.values())[len(function._own) :]
        return found.replace(parameters=bound)


class Function(SavedFunction):
    """A Python function that each call adds to the graph.

    Args:
        python_function: the function.
        name: its name.
        input_signature: what its arguments are said to be, or None.
        own: the object of which it is a method, in a tuple.
        known: what is known of it.
        conversion: how its control flow is rewritten; None if it is not.
        makes_again: whether each trace may make variables, and not the first alone.
    """

    def __init__(
        self, python_function: Callable[..., Any], name: str, input_signature: Any = None,
        own: tuple[Any, ...] = (), known: _Known | None = None,
        conversion: ConversionOptions | None = None, makes_again: bool = False,
    ) -> None:  # fmt: skip
        functools.update_wrapper(self, python_function)
        # By this `tf_inspect` looks through to the function or method.
        within = MethodType(python_function, *own) if own else python_function
        self._tf_decorator = TFDecorator("tf.function", within)
        self.python_function = python_function
        self.input_signature = input_signature
        self._name = name
        self._own = own
        self._known = known or _Known()
        self._conversion = conversion
        self._makes_again = makes_again
        self._of_methods: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()

    # It is a descriptor, for methods, so Python takes it for a function of C without a signature.
    __signature__ = _Signature()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:
            known = self._of_methods.setdefault(instance, _Known())
        except TypeError:  # nothing can refer to it weakly, or it has no hash
            known = self._known
        return Function(
            self.python_function, self._name, self.input_signature, (instance,), known,
            self._conversion, self._makes_again,
        )  # fmt: skip

    @functools.cached_property
    def function_spec(self) -> FunctionSpec:
        """The parameters."""
        called: Any = self.python_function
        if not inspect.isroutine(called) and not isinstance(called, (type, functools.partial)):
            called = called.__call__
        bound = bool(self._own) or ismethod(called)
        return FunctionSpec(called, self.input_signature, bound)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the function's operations, those with effects in the order of the function."""
        own = ()
        if self.input_signature is not None:
            extra = len(args) - len(self.input_signature)
            own = args[:extra] if extra == 1 and not self._own else ()
            args, kwargs = self.function_spec.canonical(args[len(own) :], kwargs)
        graph = get_default_graph()
        if graph.eager:
            return self._run(own, args, kwargs)
        self._note(args, kwargs)
        before, known = len(graph.get_operations()), _variables(graph)
        with name_scope(self._name), inside_function(), made_outside() as outside:
            args, kwargs = as_tensors((args, kwargs))
            result = with_tensors(self._called(*self._own, *own, *args, **kwargs))
            self._check_new([v for v in _variables(graph) if v not in known])
            made = [op for op in graph.get_operations()[before:] if op not in outside]
            return after(in_order(made), result)

    def _run(self, own: tuple[Any, ...], args: Any, kwargs: Any) -> Any:
        """Runs the function as one operation."""
        if functions_run_eagerly():
            self._note(args, kwargs)
            return self.python_function(*self._own, *own, *args, **kwargs)
        given = as_tensors(self.function_spec.canonical(args, kwargs))
        wanted = given if self.input_signature is None else (tuple(self.input_signature), {})

        def trace(found: Any) -> ConcreteFunction:
            self._note(args, kwargs)
            return self._trace(own, *found[1])

        found = self._known.calls.find((own, wanted), trace)
        result = found.apply(given)
        if found.graph.starts_variables:  # From now on they have their values.
            self._known.calls.forget(found)
        return result

    def _trace(self, own: tuple[Any, ...], args: Any, kwargs: Any) -> ConcreteFunction:
        """The function for arguments with specs in the place of tensors."""
        spec = self.function_spec
        names = [*spec.names, *(f"{spec.fullargspec.varargs}_{i}" for i in range(len(args)))]
        function = traced(
            functools.partial(self._called, *self._own, *own),
            self._name, names[: len(args)], args, kwargs,
        )  # fmt: skip
        self._check_new(list(getattr(function.graph, "variables", ())))
        if self._known.first is None:
            self._known.first = function
        return function

    @property
    def _concrete_variable_creation_fn(self) -> ConcreteFunction | None:
        """What the first call traced, by TensorFlow 2's name: Keras writes its graph."""
        return self._known.first

    def _called(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result, with its control flow rewritten where that is asked for."""
        if self._conversion is None:
            return self.python_function(*args, **kwargs)
        return converted_call(self.python_function, self._conversion, args, kwargs)

    def _note(self, args: Any, kwargs: Any) -> None:
        """Remembers what the function is called with, for a model in which it is saved."""
        if self.input_signature is not None:
            return
        positional, named = self.function_spec.canonical(args, kwargs)
        signature = described((positional, named))
        if signature is not None and signature not in self._known.signatures:
            self._known.signatures.append(signature)

    def _check_new(self, made: list[Any]) -> None:
        if self._known.variables is not None and made and not self._makes_again:
            raise ValueError(
                "tf.function-decorated function tried to create variables on non-first call."
            )
        if self._known.variables is None:
            self._known.variables = made

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for arguments of these types, which is traced once.

        Args:
            *args: tensors or specs in their place, and values of Python; none where the function
                has an input signature.
            **kwargs: the same, by name.

        Raises:
            ValueError: the arguments do not fit the input signature.
        """
        spec = self.function_spec
        if spec.input_signature is not None and not args and not kwargs:
            args = spec.input_signature
        positional, named = spec.canonical(args, kwargs)
        wanted = described((positional, named))
        if spec.input_signature is not None:
            wanted = spec.input_signature, {}
        if wanted is None:
            raise ValueError(
                f"The function {self._name} cannot be traced for {(positional, named)}: arguments "
                "are tensors, specs, numbers, strings, types and shapes."
            )
        graph = root_of(get_default_graph())
        for known, where, function in self._known.traced:
            if where is graph and _same(known, wanted):
                return function
        function = self._trace((), *wanted)
        self._known.traced.append((wanted, graph, function))
        if graph.eager:
            self._known.calls.offer(((), wanted), function)
        return function

    def _list_all_concrete_functions_for_serialization(self) -> list[ConcreteFunction]:
        """The function for all that it was called with or traced for."""
        if self.input_signature is not None:
            return [self.get_concrete_function()]
        wanted = [(k, a) for k, a in self._known.signatures]
        wanted += [known for known, _, _ in self._known.traced if known not in wanted]
        return [self.get_concrete_function(*args, **kwargs) for args, kwargs in wanted]


def _same(one: Any, other: Any) -> bool:
    """Whether two signatures are equal, with values of the same types: 1 is not True."""
    if one != other:
        return False
    pairs = zip(nest.flatten(one), nest.flatten(other), strict=True)
    return all(
        type(a) is type(b) and getattr(a, "name", 0) == getattr(b, "name", 0) for a, b in pairs
    )


def _variables(graph: Any) -> list[Any]:
    return graph.get_collection("variables") + graph.get_collection("local_variables")  # type: ignore[no-any-return]


def function(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    experimental_autograph_options: Any = None, experimental_relax_shapes: bool = False,
    experimental_compile: bool | None = None,
) -> Any:  # fmt: skip
    """Decorates a function of tensors whose effects happen in the order in which it has them.

    A call adds the function's operations to the graph that is being built. Variables may be made
    in the first call only. `if`, `while` and `for` may depend on tensors, in the function and in
    those of the program that it calls.

    Args:
        func: the function; without it a decorator is returned.
        input_signature: a `tf.TensorSpec` for each argument, which is checked.
        autograph: whether control flow may depend on tensors.
        experimental_autograph_options: a `tf.autograph.experimental.Feature`, or several.
        experimental_relax_shapes, experimental_compile: accepted for TF's signature.

    Raises:
        TypeError: `input_signature` is no sequence.
        ValueError: at a call, when variables are made again or the signature does not fit.
    """
    return _decorated(func, input_signature, autograph, experimental_autograph_options)


def defun(
    func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: bool = True,
    experimental_autograph_options: Any = None, experimental_relax_shapes: bool = False,
) -> Any:  # fmt: skip
    """`function` whose every trace may make variables, as `tf.contrib.eager.defun` does.

    Args:
        func, input_signature, autograph, experimental_autograph_options: as of `function`.
        experimental_relax_shapes: as of `function`.
    """
    return _decorated(func, input_signature, autograph, experimental_autograph_options, True)


def _decorated(
    func: Callable[..., Any] | None, input_signature: Any, autograph: bool, features: Any,
    makes_again: bool = False,
) -> Any:  # fmt: skip
    if input_signature is not None and not isinstance(input_signature, (list, tuple)):
        raise TypeError(
            f"input_signature must be either a tuple or a list, received {type(input_signature)}"
        )

    conversion = None
    if autograph:
        conversion = ConversionOptions(
            recursive=True, user_requested=True, optional_features=features
        )

    def decorate(inner: Callable[..., Any]) -> Function:
        name = getattr(inner, "__name__", type(inner).__name__)
        # A scope at the top begins with a letter.
        plain = name.lstrip("_") if name.isidentifier() else ""
        inspect.signature(inner)
        return Function(
            inner, plain or "function", input_signature, conversion=conversion,
            makes_again=makes_again,
        )  # fmt: skip

    return decorate if func is None else decorate(func)


def defun_with_attributes(
    func: Callable[..., Any] | None = None, input_signature: Any = None, attributes: Any = None,
    autograph: bool = True, experimental_autograph_options: Any = None,
    experimental_relax_shapes: bool = False,
) -> Any:  # fmt: skip
    """`function` as TF's internal modules make it.

    Args:
        func, input_signature: as of `function`.
        attributes: notes for TF's choice between functions; there is nothing to choose here.
        autograph, experimental_autograph_options: as of `function`.
        experimental_relax_shapes: as of `function`.
    """
    return defun(func, input_signature, autograph, experimental_autograph_options)
