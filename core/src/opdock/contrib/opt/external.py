"""Variables that an optimizer outside of the graph moves, such as those of SciPy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, pairwise
from math import inf, prod
from typing import Any

import numpy as np

from opdock.autodiff.gradients import gradients
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.registry import get
from opdock.graph.variables.variable_lists import trainable_variables
from opdock.ops.array import reshape
from opdock.ops.identity import placeholder

_log = logging.getLogger("tensorflow")

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]


class ExternalOptimizerInterface:
    """Base of what minimizes a loss by asking a session for values and gradients.

    A subclass has `_minimize`. Variables are one vector to it, all of them flattened.

    Args:
        loss: a scalar tensor.
        var_list: the variables to move, all trainable ones by default.
        equalities: scalar tensors to be held at zero.
        inequalities: scalar tensors to be held at zero or above.
        var_to_bounds: variable to (low, high), each a number or an array that broadcasts to its
            shape; infinities where there is no bound.
        **optimizer_kwargs: for the subclass.
    """

    def __init__(
        self, loss: Any, var_list: Any = None, equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None, var_to_bounds: Mapping[Any, Any] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:  # fmt: skip
        self._loss = loss
        self._equalities = list(equalities or ())
        self._inequalities = list(inequalities or ())
        self._vars = trainable_variables() if var_list is None else list(var_list)
        self._packed_bounds = None if var_to_bounds is None else self._bounds(var_to_bounds)
        self._update_placeholders = [placeholder(v.dtype.base_dtype) for v in self._vars]
        self._var_updates = [
            v.assign(reshape(p, _shape(v)))
            for v, p in zip(self._vars, self._update_placeholders, strict=True)
        ]
        self.optimizer_kwargs = optimizer_kwargs
        self._packed_var = self._pack(self._vars)
        self._packed_loss_grad = self._slope(loss)
        self._packed_equality_grads = [self._slope(t) for t in self._equalities]
        self._packed_inequality_grads = [self._slope(t) for t in self._inequalities]
        ends = accumulate((prod(_shape(v)) for v in self._vars), initial=0)
        self._packing_slices = [slice(start, end) for start, end in pairwise(ends)]

    def minimize(
        self, session: Any = None, feed_dict: Mapping[Any, Any] | None = None,
        fetches: Sequence[Any] | None = None,
        step_callback: Callable[[Any], Any] | None = None,
        loss_callback: Callable[..., Any] | None = None, **run_kwargs: Any,
    ) -> None:  # fmt: skip
        """Moves the variables to where the loss is least; returns when they are there.

        Args:
            session: the default session if None.
            feed_dict: fed whenever the session is asked.
            fetches: tensors whose values `loss_callback` gets.
            step_callback: called after each step, with all variables as one vector.
            loss_callback: called whenever the loss has been computed.
            **run_kwargs: for the call of `Session.run` that sets the variables.
        """
        session = session or get_default_session()

        def ask(tensors: Sequence[Any], callback: Any = None) -> Callable[[Any], Any]:
            return self._function(tensors, session, feed_dict or {}, list(fetches or ()), callback)

        result = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=ask([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[ask([t]) for t in self._equalities],
            equality_grad_funcs=[ask([t]) for t in self._packed_equality_grads],
            inequality_funcs=[ask([t]) for t in self._inequalities],
            inequality_grad_funcs=[ask([t]) for t in self._packed_inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda _: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        values = [result[part] for part in self._packing_slices]
        feeds = dict(zip(self._update_placeholders, values, strict=True))
        session.run(self._var_updates, feed_dict=feeds, **run_kwargs)

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equality_funcs: Any, equality_grad_funcs: Any,
        inequality_funcs: Any, inequality_grad_funcs: Any, packed_bounds: Any, step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:  # fmt: skip
        """The vector at which the loss is least.

        Args:
            initial_val: where to begin.
            loss_grad_func: of a vector, the loss and its gradient.
            equality_funcs, equality_grad_funcs: of a vector, what is to be zero, its gradient.
            inequality_funcs, inequality_grad_funcs: likewise, what is not to be negative.
            packed_bounds: (low, high) for each element, or None.
            step_callback: to be called with the vector after each step.
            optimizer_kwargs: what the constructor was given.

        Raises:
            NotImplementedError: a subclass does not have this method.
        """
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() "
            "method."
        )

    def _bounds(self, given: Mapping[Any, Any]) -> list[tuple[float, float]]:
        by_op = {var.op: bounds for var, bounds in given.items()}
        packed: list[tuple[float, float]] = []
        for var in self._vars:
            low, high = (
                np.broadcast_to(bound, _shape(var)).ravel()
                for bound in by_op.get(var.op, (-inf, inf))
            )
            packed += zip(low, high, strict=True)
        return packed

    def _slope(self, tensor: Any) -> Any:
        """The gradient by all variables, as a vector."""
        found = gradients(tensor, self._vars)
        pairs = zip(self._vars, found, strict=True)
        return self._pack([get("ZerosLike")(v) if g is None else g for v, g in pairs])

    @classmethod
    def _pack(cls, tensors: Sequence[Any]) -> Any:
        """Tensors as one vector; None where there are none."""
        flat = [reshape(t, [-1]) for t in tensors]
        if len(flat) < 2:
            return flat[0] if flat else None
        return get("ConcatV2")(flat, 0)

    def _function(
        self, tensors: Sequence[Any], session: Any, feeds: Mapping[Any, Any],
        fetches: Sequence[Any], callback: Any,
    ) -> Callable[[Any], Any]:  # fmt: skip
        """A function of a vector that has the session compute tensors, the variables being fed."""

        def evaluate(vector: Any) -> Any:
            parts = zip(self._vars, self._packing_slices, strict=True)
            placed = {v: vector[part].reshape(_shape(v)) for v, part in parts}
            found = session.run([*tensors, *fetches], feed_dict={**placed, **feeds})
            if callback is not None:
                callback(*found[len(tensors) :])
            return found[: len(tensors)]

        return evaluate


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """`scipy.optimize.minimize` over a session; its `method` is L-BFGS-B by default.

    Arguments as of the base; the others are those of SciPy's function, such as
    `options={"maxiter": 100}`.
    """

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equality_funcs: Any, equality_grad_funcs: Any,
        inequality_funcs: Any, inequality_grad_funcs: Any, packed_bounds: Any, step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:  # fmt: skip
        """See the base.

        Raises:
            ValueError: an argument of SciPy's is given that follows from those of the base.
            ModuleNotFoundError: SciPy is not installed.
        """
        import scipy.optimize

        def loss_and_slope(vector: Any) -> tuple[float, Any]:
            loss, slope = loss_grad_func(vector)
            return float(loss), slope.astype(np.float64)

        def constraint(kind: str, value: Any, slope: Any) -> dict[str, Any]:
            # SciPy's compiled methods take no other floats than its own.
            return {
                "type": kind,
                "fun": lambda v: np.float64(value(v)[0]),
                "jac": lambda v: slope(v)[0].astype(np.float64),
            }

        kwargs = dict(optimizer_kwargs)
        held = [
            *(("eq", *pair) for pair in zip(equality_funcs, equality_grad_funcs, strict=True)),
            *(
                ("ineq", *pair)
                for pair in zip(inequality_funcs, inequality_grad_funcs, strict=True)
            ),
        ]
        own = {
            "jac": True,
            "callback": step_callback,
            "method": kwargs.pop("method", self._DEFAULT_METHOD),
            "constraints": [constraint(*one) for one in held],
            "bounds": packed_bounds,
        }
        for key in own.keys() & kwargs.keys():
            if key == "bounds":
                raise ValueError("Bounds must be set using the var_to_bounds argument")
            raise ValueError(
                f"Optimizer keyword arg '{key}' is set automatically and cannot be injected "
                "manually"
            )
        start = np.asarray(initial_val, np.float64)
        result = scipy.optimize.minimize(loss_and_slope, start, **own, **kwargs)
        lines = [
            "Optimization terminated with:",
            f"  Message: {result.message}",
            f"  Objective function value: {result.fun:f}",
        ]
        if hasattr(result, "nit"):
            lines.append(f"  Number of iterations: {result.nit}")
        if hasattr(result, "nfev"):
            lines.append(f"  Number of functions evaluations: {result.nfev}")
        _log.info("\n".join(lines))
        return result["x"]


def _shape(var: Any) -> tuple[int, ...]:
    return tuple(var.get_shape().as_list())
