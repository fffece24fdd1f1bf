"""`K.function`: a computation of the graph as a function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.variable import Variable
from opdock.keras_base.state import get_session
from opdock.ops import control, state
from opdock.ops.identity import identity
from opdock.util import nest

__all__ = ["Function", "function", "get_reachable_from_inputs"]


def function(
    inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **kwargs: Any
) -> Any:
    """A `Function` of these arguments."""
    return Function(inputs, outputs, updates=updates, name=name, **kwargs)


class Function:
    """A function of arrays that runs a part of the graph in Keras' session.

    Args:
        inputs: the tensors that arrays are fed to, in any structure.
        outputs: the tensors whose values are the results, in any structure.
        updates: operations that run as well, or pairs of a variable and its new value.
        name: for whoever reads it.
        feed_dict: what else is fed.
        fetches: tensors that are computed as well; `fetch_callbacks` gets their values.
        options, run_metadata: of `tf.Session.run`.

    Raises:
        TypeError: the updates are no list.
        ValueError: there is another argument.
    """

    def __init__(
        self, inputs: Any, outputs: Any, updates: Any = None, name: str | None = None,
        feed_dict: Any = None, fetches: Any = None, options: Any = None, run_metadata: Any = None,
        **session_kwargs: Any,
    ) -> None:  # fmt: skip
        if session_kwargs:
            raise ValueError(
                "Some keys in session_kwargs are not supported at this time: "
                f"{session_kwargs.keys()}"
            )
        if not isinstance(updates or [], list | tuple):
            raise TypeError("`updates` in a Keras backend function should be a list or tuple.")
        self.name, self.feed_dict = name, feed_dict
        self.run_options, self.run_metadata = options, run_metadata
        self._structure = outputs
        self.inputs = nest.flatten(inputs, expand_composites=True)
        self.outputs = [
            convert_to_tensor(x) if isinstance(x, Variable) else x
            for x in nest.flatten(outputs, expand_composites=True)
        ]
        with control_dependencies(self.outputs[:1]):
            self.updates_op = control.group(*[_update(one) for one in updates or []])
        extra = fetches if isinstance(fetches, list) else [] if fetches is None else [fetches]
        self.fetches = [identity(x) for x in extra]
        self.fetch_callbacks: dict[Any, Callable[[Any], Any]] = {}

    def __call__(self, inputs: Any) -> Any:
        """The values of the outputs, in their structure; an input that is None is not fed."""
        given = nest.flatten(inputs, expand_composites=True)
        session = get_session(given)
        pairs = [*zip(self.inputs, given, strict=False), *(self.feed_dict or {}).items()]
        found = session.run(
            [*self.outputs, *self.fetches, self.updates_op],
            feed_dict={t: self._array(session, t, v) for t, v in pairs if v is not None},
            options=self.run_options, run_metadata=self.run_metadata,
        )  # fmt: skip
        count = len(self.outputs)
        for fetch, value in zip(self.fetches, found[count:-1], strict=True):
            if fetch in self.fetch_callbacks:
                self.fetch_callbacks[fetch](value)
        return nest.pack_sequence_as(self._structure, found[:count])

    def _array(self, session: Any, tensor: Any, value: Any) -> Any:
        """What is fed to a tensor: the value of another one, which its own feeds need not have."""
        if isinstance(value, Tensor | Variable):
            value = session.run(value)
        return np.asarray(value, dtype=tensor.dtype.base_dtype.as_numpy_dtype)


def _update(one: Any) -> Any:
    return state.assign(*one) if isinstance(one, tuple) else one


def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> set[Any]:
    """All tensors and operations that depend on some, those included.

    Args:
        inputs: tensors, variables or operations.
        targets: the search ends when it has found these.
    """
    ahead = nest.flatten(inputs)
    reached = set(ahead)
    left = None if targets is None else set(nest.flatten(targets))
    while ahead:
        one = ahead.pop()
        found: list[Any] = []
        if isinstance(one, Operation):
            found = [*one.outputs, *one._control_outputs]
        elif isinstance(one, Variable):
            found = [one.op]
        elif isinstance(one, Tensor):
            found = one.consumers()
        new = [x for x in found if x not in reached]
        reached.update(new)
        ahead += new
        if left is not None and left <= reached:
            break
    return reached
