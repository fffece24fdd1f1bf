"""`tf.contrib.eager.metrics`: statistics over an evaluation, as objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.contrib import summary
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import control_dependencies, executing_eagerly
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.argmax import argmax
from opdock.ops.array import shape as shape_of
from opdock.ops.array import size
from opdock.ops.cast import cast
from opdock.ops.check import assert_equal
from opdock.ops.compare import equal, greater_equal
from opdock.ops.composed.function import function
from opdock.ops.control import group
from opdock.ops.reduce import reduce_sum

__all__ = [
    "Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "Mean", "Metric", "SparseAccuracy",
]  # fmt: skip

_NO_SCOPE_NAME: Final = re.compile("[^A-Za-z0-9.]")


class Metric(Trackable):
    """State that batches update when it is called with them, and `result` sums up.

    Subclasses make variables in `build` by `add_variable`, update them in `call`, and give a value
    in `result`. In a graph, a call makes what updates the state when it is run.

    Args:
        name: its name; that of the class by default.
        use_global_variables: whether its variables are global ones of a graph, and so saved.
    """

    def __init__(self, name: str | None = None, use_global_variables: bool = False) -> None:
        self._built = False
        self._vars: list[Any] = []
        self._initial_values: list[Any] = []
        self._use_global_variables = use_global_variables
        name = name or type(self).__name__
        scope_name = _NO_SCOPE_NAME.sub("_", name)
        with variable_scope(scope_name, use_resource=True, reuse=False) as scope:
            self._name = name + scope.name[scope.name.rfind(scope_name) + len(scope_name) :]
            self._scope = scope
        self._graph = get_default_graph()
        self._update = self.call if self._graph.eager else function(self.call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Updates the state by a batch; in a graph, what does so when it is run."""
        if not self._built:
            with self._graph.as_default(), variable_scope(self._scope):
                self.build(*args, **kwargs)
            self._built = True
        return self._update(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def variables(self) -> list[Any]:
        """The variables that hold the state."""
        return self._vars

    def init_variables(self) -> Any:
        """Begins anew: at once, or, in a graph, by the operation that is returned."""
        if not executing_eagerly():
            return group(*(v.initializer for v in self._vars))
        for variable, value in zip(self._vars, self._initial_values, strict=True):
            variable.assign(value)
        return None

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Makes the variables, for batches like the first one."""
        raise NotImplementedError("Metrics must define a build() member function")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Updates the variables."""
        raise NotImplementedError("Metrics must define a call() member function")

    def result(self) -> Any:
        """The value by the state."""
        raise NotImplementedError("Metrics must define a result() member function")

    def value(self) -> Any:
        """In a graph the result, else the function that gives it."""
        return self.result if executing_eagerly() else self.result()

    def aggregate(self, metrics: Sequence[Metric]) -> None:
        """Adds the state of other metrics of this kind.

        Raises:
            TypeError: one is of another kind.
            ValueError: one has other variables.
        """
        for other in metrics:
            if type(self) is not type(other):
                raise TypeError(
                    f"All metrics must be the same type, '{type(self)}' != '{type(other)}'."
                )
            if [v.shape for v in other._vars] != [v.shape for v in self._vars]:
                raise ValueError("All metrics must have variables in the same order.")
        for i, variable in enumerate(self._vars):
            for other in metrics:
                variable.assign_add(other._vars[i].read_value())

    def add_variable(
        self, name: str, shape: Any = None, dtype: Any = None, initializer: Any = None
    ) -> Any:
        """Makes a variable, in `build`.

        Raises:
            RuntimeError: the metric is built.
        """
        if self._built:
            raise RuntimeError("Can't call add_variable() except in build().")
        kind = "GLOBAL_VARIABLES" if self._use_global_variables else "LOCAL_VARIABLES"
        made = self._add_variable_with_custom_getter(
            name=name, shape=shape, dtype=dtype, initializer=initializer, trainable=False,
            collections=[getattr(GraphKeys, kind), GraphKeys.METRIC_VARIABLES], use_resource=True,
            getter=get_variable, overwrite=True,
        )  # fmt: skip
        self._vars.append(made)
        if executing_eagerly():
            self._initial_values.append(made.read_value())
        return made


class Mean(Metric):
    """The mean of values, with weights if there are some.

    Args:
        name: its name.
        dtype: the type in which it is computed.
        use_global_variables: see `Metric`.
    """

    def __init__(
        self, name: str | None = None, dtype: Any = dtypes.float64,
        use_global_variables: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, use_global_variables)
        self.dtype = dtypes.as_dtype(dtype)

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Makes the sum and the weight of what was summed up."""
        self.numer, self.denom = (
            self.add_variable(n, shape=(), dtype=self.dtype, initializer=zeros_initializer())
            for n in ("numer", "denom")
        )

    def add(self, values: Any, weights: Any = None) -> Any:
        """Adds values, each as often as its weight says, which broadcasts; returns them."""
        found = cast(values, self.dtype)
        if weights is None:
            weight, summed, given = cast(size(found), self.dtype), found, values
        else:
            weight, given = cast(weights, self.dtype), (values, weights)
            summed = found * weight
        with control_dependencies([self.denom.assign_add(reduce_sum(weight), read_value=False)]):
            done = self.numer.assign_add(reduce_sum(summed), read_value=False)
        with control_dependencies([done]):
            return given

    call: Callable[..., Any] = add  # of other arguments in subclasses

    def result(self, write_summary: bool = True) -> Any:
        """The mean, written to the default writer of `tf.contrib.summary` if there is one."""
        mean = self.numer / self.denom
        if write_summary:
            summary.scalar(self.name, mean)
        return mean


class Accuracy(Mean):
    """The share of predictions that are equal to the labels."""

    def __init__(self, name: str | None = None, dtype: Any = dtypes.float64) -> None:
        super().__init__(name, dtype)

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        """Counts predictions that are right.

        Raises:
            InvalidArgumentError: labels and predictions differ in shape.
        """
        alike = assert_equal(
            shape_of(labels), shape_of(predictions),
            message="Shapes of labels and predictions are unequal",
        )  # fmt: skip
        with control_dependencies([] if alike is None else [alike]):
            right = cast(equal(labels, predictions), self.dtype)
        self.add(right, weights)
        return (labels, predictions) if weights is None else (labels, predictions, weights)


class CategoricalAccuracy(Accuracy):
    """The share of predictions whose largest score is at the label's one."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        """Counts predictions that are right; both have a score for each class on the last axis."""
        return super().call(argmax(labels, axis=-1), argmax(predictions, axis=-1), weights)


class BinaryAccuracy(Accuracy):
    """The share of predictions that are on the label's side of a threshold.

    Args:
        threshold: from where on a prediction means yes.
        name: its name.
        dtype: the type in which it is computed.
    """

    def __init__(
        self, threshold: float, name: str | None = None, dtype: Any = dtypes.float64
    ) -> None:
        super().__init__(name, dtype)
        self.threshold = threshold

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        """Counts predictions that are right."""
        said = greater_equal(predictions, self.threshold)
        return super().call(cast(labels, dtypes.bool_), said, weights)


class SparseAccuracy(Accuracy):
    """The share of predictions whose largest score is at the label, a number."""

    def call(self, labels: Any, predictions: Any, weights: Any = None) -> Any:
        """Counts predictions that are right."""
        return super().call(cast(labels, dtypes.int64), argmax(predictions, axis=-1), weights)
