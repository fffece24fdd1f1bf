"""`optimize_loss`: from a loss to a training step, with all that is usually around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import constant_initializer, zeros_initializer
from opdock.graph.variables.variable_lists import trainable_variables
from opdock.graph.variables.variable_scope import get_variable, variable_scope
from opdock.ops.arithmetic import maximum, minimum
from opdock.ops.cast import cast
from opdock.ops.clip import clip_by_global_norm, global_norm
from opdock.ops.composed.check_static import assert_scalar
from opdock.ops.control import with_dependencies
from opdock.ops.elementary import exp, log, sqrt, square
from opdock.ops.fill import ones_like
from opdock.ops.random import truncated_normal
from opdock.ops.select import where
from opdock.ops.summary import histogram, scalar
from opdock.train.adagrad import AdagradOptimizer, FtrlOptimizer
from opdock.train.adaptive import AdamOptimizer, RMSPropOptimizer
from opdock.train.gradient_descent import GradientDescentOptimizer, MomentumOptimizer
from opdock.train.moving_averages import assign_moving_average
from opdock.train.optimizer import Optimizer
from opdock.train.training_util import assert_global_step, get_global_step

__all__ = ["OPTIMIZER_CLS_NAMES", "OPTIMIZER_SUMMARIES", "adaptive_clipping_fn", "optimize_loss"]

OPTIMIZER_CLS_NAMES: Final[dict[str, Callable[..., Optimizer]]] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "Momentum": lambda learning_rate: MomentumOptimizer(learning_rate, momentum=0.9),
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
"""The optimizers that can be asked for by name."""

OPTIMIZER_SUMMARIES: Final = [
    "learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm",
]  # fmt: skip
"""What `optimize_loss` can summarize."""

_Gradients = list[tuple[Any, Any]]


def optimize_loss(
    loss: Any, global_step: Any, learning_rate: Any, optimizer: Any,
    gradient_noise_scale: float | None = None, gradient_multipliers: Any = None,
    clip_gradients: Any = None, learning_rate_decay_fn: Any = None, update_ops: Any = None,
    variables: Any = None, name: Any = None, summaries: Any = None,
    colocate_gradients_with_ops: bool = False, increment_global_step: bool = True,
) -> Tensor:  # fmt: skip
    """The loss, which when it is computed also takes a step of training.

    Args:
        loss: a scalar.
        global_step: the variable that counts steps; the graph's, if it has one, if None.
        learning_rate: a float, which becomes a variable, a scalar tensor, or None.
        optimizer: a name of `OPTIMIZER_CLS_NAMES`, a subclass of `Optimizer`, one of its objects,
            or a function from the learning rate (from nothing, if that is None) to an object.
        gradient_noise_scale: adds normal noise of this scale to the gradients, if not None.
        gradient_multipliers: a dict from variables or their names to what their gradients are
            multiplied by.
        clip_gradients: a float, to which the norm of all gradients is cut, or a function from pairs
            of gradient and variable to such pairs.
        learning_rate_decay_fn: a function of the learning rate and the global step to a tensor.
        update_ops: operations that run before the loss is used; those of UPDATE_OPS if None.
        variables: what is trained; all trainable variables if None.
        name: the variable scope; "OptimizeLoss", made unique, by default.
        summaries: a list of `OPTIMIZER_SUMMARIES`; loss, learning rate and global norm if None.
        colocate_gradients_with_ops: whether gradients are computed where the forward step is.
        increment_global_step: whether the step counts.

    Raises:
        ValueError: an argument is none of the above, or no gradient is left.
    """
    loss = convert_to_tensor(loss)
    assert_scalar(loss)
    if global_step is None:
        global_step = get_global_step()
    else:
        assert_global_step(global_step)
    with variable_scope(name, "OptimizeLoss", [loss, global_step]):
        updates = update_ops
        if updates is None:
            updates = dict.fromkeys(get_collection(GraphKeys.UPDATE_OPS))
        if updates:
            loss = with_dependencies(list(updates), loss)
        rate = _rate(learning_rate)
        shown = _chosen(summaries)
        if learning_rate is not None and learning_rate_decay_fn is not None:
            if global_step is None:
                raise ValueError("global_step is required for learning_rate_decay_fn.")
            rate = learning_rate_decay_fn(rate, global_step)
            if "learning_rate" in shown:
                scalar("learning_rate", rate)
        opt = _optimizer(optimizer, rate)
        trained = trainable_variables() if variables is None else variables
        gradients = opt.compute_gradients(
            loss, trained, colocate_gradients_with_ops=colocate_gradients_with_ops
        )
        if gradient_noise_scale is not None:
            gradients = _noisy(gradients, gradient_noise_scale)
        if gradient_multipliers is not None:
            gradients = _multiplied(gradients, gradient_multipliers)
            if not gradients:
                raise ValueError(
                    "Empty list of (gradient, var) pairs encountered. This is most likely to be "
                    "caused by an improper value of gradient_multipliers."
                )
        norms = "global_gradient_norm" in shown or "gradient_norm" in shown
        if norms:
            scalar("global_norm/gradient_norm", global_norm([g for g, _ in gradients]))
        gradients = _clipped(gradients, clip_gradients)
        if "loss" in shown:
            scalar("loss", loss)
        _summarize(gradients, shown)
        if norms and clip_gradients is not None:
            scalar("global_norm/clipped_gradient_norm", global_norm([g for g, _ in gradients]))
        counted = global_step if increment_global_step else None
        step = opt.apply_gradients(gradients, global_step=counted, name="train")
        return with_dependencies([step], loss)  # type: ignore[no-any-return]


def _rate(given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, Tensor) and given.shape.ndims == 0:
        return given
    if isinstance(given, float):
        if given < 0.0:
            raise ValueError(f"Invalid learning_rate {given}.")
        return get_variable(
            "learning_rate", [], trainable=False, initializer=constant_initializer(given)
        )
    raise ValueError(
        f"Learning rate should be 0d Tensor or float. Got {given} of type {type(given)}"
    )


def _chosen(summaries: Any) -> Any:
    if summaries is None:
        return ["loss", "learning_rate", "global_gradient_norm"]
    for one in summaries:
        if one not in OPTIMIZER_SUMMARIES:
            raise ValueError(
                f"Summaries should be one of [{', '.join(OPTIMIZER_SUMMARIES)}], you provided "
                f"{one}."
            )
    return summaries


def _optimizer(given: Any, rate: Any) -> Optimizer:
    if isinstance(given, Optimizer):
        return given
    is_class = isinstance(given, type) and issubclass(given, Optimizer)
    if isinstance(given, str) or is_class:
        if rate is None:
            kind = "class" if is_class else "string"
            raise ValueError(
                f"Learning rate is None, but should be specified if optimizer is {kind} ({given})."
            )
        if not isinstance(given, str):
            return given(learning_rate=rate)  # type: ignore[no-any-return]
        if given not in OPTIMIZER_CLS_NAMES:
            raise ValueError(
                f"Optimizer name should be one of [{', '.join(OPTIMIZER_CLS_NAMES)}], you provided "
                f"{given}."
            )
        return OPTIMIZER_CLS_NAMES[given](learning_rate=rate)
    if not callable(given):
        raise ValueError(
            "Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass "
            f"of Optimizer or function with one argument. Got {given}."
        )
    made = given() if rate is None else given(rate)
    if not isinstance(made, Optimizer):
        raise ValueError(
            f"Unrecognized optimizer: function should return subclass of Optimizer. Got {made}."
        )
    return made


def _clipped(gradients: _Gradients, how: Any) -> _Gradients:
    if how is None:
        return gradients
    if isinstance(how, float):
        cut, _ = clip_by_global_norm([g for g, _ in gradients], how)
        return [(g, v) for g, (_, v) in zip(cut, gradients, strict=True)]
    if callable(how):
        return how(gradients)  # type: ignore[no-any-return]
    raise ValueError(f"Unknown type {type(how)} for clip_gradients")


def _scaled(gradient: Any, factor: Any) -> Any:
    """A gradient times a number, of the slices of one that has slices."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
    return gradient * cast(factor, gradient.dtype)


def _noisy(gradients: _Gradients, scale: float) -> _Gradients:
    def noisy(gradient: Any) -> Any:
        if gradient is None:
            return None
        slices = isinstance(gradient, IndexedSlices)
        shape = gradient.dense_shape if slices else gradient.get_shape()
        return gradient + truncated_normal(shape) * scale

    return [(noisy(g), v) for g, v in gradients]


def _multiplied(gradients: _Gradients, factors: Mapping[Any, Any]) -> _Gradients:
    def factor(variable: Any) -> Any:
        return factors[variable] if variable in factors else factors.get(variable.name, 1.0)

    return [
        (_scaled(g, factor(v)) if v in factors or v.name in factors else g, v) for g, v in gradients
    ]


def _summarize(gradients: _Gradients, shown: Iterable[str]) -> None:
    for gradient, variable in gradients:
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        if values is None:
            continue
        name = variable.name.replace(":", "_")
        if "gradients" in shown:
            histogram(f"gradients/{name}", values)
        if "gradient_norm" in shown:
            scalar(f"gradient_norm/{name}", global_norm([values]))


def adaptive_clipping_fn(
    std_factor: float = 2.0, decay: float = 0.95, static_max_norm: float | None = None,
    global_step: Any = None, report_summary: bool = False, epsilon: float = 1e-8,
    name: Any = None,
) -> Callable[[_Gradients], _Gradients]:  # fmt: skip
    """A function for `clip_gradients` that cuts gradients which are much larger than usual.

    What is usual is known from moving averages of the logarithm of their norm.

    Args:
        std_factor: how many standard deviations above the mean are usual.
        decay: how much of the averages a step keeps.
        static_max_norm: a norm above which gradients are cut in any case, or None.
        global_step: the variable that counts steps, with which averages are young in the beginning.
        report_summary: whether what is usual is summarized.
        epsilon: added where a logarithm or a root is taken.
        name: the variable scope; "AdaptiveMaxNorm", made unique, by default.
    """

    def clip(gradients: _Gradients) -> _Gradients:
        norm = global_norm([g for g, _ in gradients])
        most, mean = _usual(norm, std_factor, decay, global_step, epsilon, name)
        if report_summary:
            scalar("global_norm/adaptive_max_gradient_norm", most)
        factor = where(norm < most, ones_like(norm), exp(mean) / norm)
        if static_max_norm is not None:
            factor = minimum(static_max_norm / norm, factor)
        return [(_scaled(g, factor), v) for g, v in gradients]

    return clip


def _usual(
    norm: Any, std_factor: float, decay: Any, global_step: Any, epsilon: float, name: Any
) -> tuple[Any, Any]:
    """The norm up to which gradients are usual, and the mean logarithm of norms."""
    with variable_scope(name, "AdaptiveMaxNorm", [norm]):
        logarithm = log(norm + epsilon)
        if global_step is not None:
            count = cast(global_step, dtypes.float32)
            decay = minimum(decay, count / (count + 1.0))

        def average(name: str, value: Any) -> Any:
            kept = get_variable(
                name, value.shape, value.dtype, zeros_initializer(), trainable=False
            )
            return assign_moving_average(kept, value, decay, zero_debias=False)

        mean = average("mean", logarithm)
        spread = average("sq_mean", square(logarithm)) - square(mean)
        return exp(mean + std_factor * sqrt(maximum(epsilon, spread))), mean
