"""A step of training as one operation, what is done to its gradients, and the loop that runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys, get_collection, get_collection_ref
from opdock.graph.nodes.composite import IndexedSlices
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import control_dependencies, name_scope
from opdock.graph.variables.variable_lists import trainable_variables
from opdock.ops.arithmetic import multiply
from opdock.ops.clip import clip_by_norm, global_norm
from opdock.ops.control import no_op, with_dependencies
from opdock.ops.identity import check_numerics as checked_numbers
from opdock.ops.summary import histogram, scalar
from opdock.train.loops.monitored_session import MonitoredTrainingSession
from opdock.train.optimizer import Optimizer
from opdock.train.training_util import get_or_create_global_step

__all__ = [
    "add_gradients_summaries", "clip_gradient_norms", "clip_gradient_norms_fn", "create_train_op",
    "multiply_gradients", "train",
]  # fmt: skip

Gradients = list[tuple[Any, Any]]

_USE_GLOBAL_STEP: Final = 0


def add_gradients_summaries(grads_and_vars: Gradients) -> list[Any]:
    """A histogram of each gradient, and its norm.

    Args:
        grads_and_vars: pairs of gradient and variable.
    """
    made = []
    for gradient, variable in grads_and_vars:
        name = variable.op.name
        if gradient is None:
            logging.info("Var %s has no gradient", name)
            continue
        values = gradient.values if isinstance(gradient, IndexedSlices) else gradient
        made.append(histogram(f"{name}_gradient", values))
        made.append(scalar(f"{name}_gradient_norm", global_norm([values])))
    return made


def _changed(gradient: Any, change: Callable[[Any], Any]) -> Any:
    """A gradient whose values, those of its slices where it has such, are changed."""
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(change(gradient.values), gradient.indices, gradient.dense_shape)
    return change(gradient)


def clip_gradient_norms(gradients_to_variables: Gradients, max_norm: Any) -> Gradients:
    """Gradients none of which is longer than a norm.

    Args:
        gradients_to_variables: pairs of gradient and variable.
        max_norm: the norm.
    """
    return [
        (None if g is None else _changed(g, lambda values: clip_by_norm(values, max_norm)), v)
        for g, v in gradients_to_variables
    ]


def clip_gradient_norms_fn(max_norm: Any) -> Callable[[Gradients], Gradients]:
    """`clip_gradient_norms` with this norm, for `transform_grads_fn`."""
    return lambda gradients: clip_gradient_norms(gradients, max_norm)


def multiply_gradients(
    grads_and_vars: Gradients, gradient_multipliers: Mapping[Any, Any]
) -> Gradients:
    """Gradients of which some are multiplied.

    Args:
        grads_and_vars: a list of pairs of gradient and variable.
        gradient_multipliers: a dict from variables or their names to factors.

    Raises:
        ValueError: an argument is none of these or empty, or there is no such gradient.
    """
    if not isinstance(grads_and_vars, list):
        raise ValueError("`grads_and_vars` must be a list.")
    if not gradient_multipliers:
        raise ValueError("`gradient_multipliers` is empty.")
    if not isinstance(gradient_multipliers, dict):
        raise ValueError("`gradient_multipliers` must be a dict.")
    multiplied = []
    for gradient, variable in grads_and_vars:
        key = variable if variable in gradient_multipliers else variable.op.name
        found = gradient
        if key in gradient_multipliers:
            if gradient is None:
                raise ValueError("Requested multiple of `None` gradient.")
            factor = convert_to_tensor(gradient_multipliers[key], gradient.dtype)
            found = _changed(gradient, functools.partial(multiply, factor))
        multiplied.append((found, variable))
    return multiplied


def create_train_op(
    total_loss: Any, optimizer: Optimizer, global_step: Any = _USE_GLOBAL_STEP,
    update_ops: Any = None, variables_to_train: Any = None, transform_grads_fn: Any = None,
    summarize_gradients: bool = False, gate_gradients: int = Optimizer.GATE_OP,
    aggregation_method: Any = None, colocate_gradients_with_ops: bool = False,
    check_numerics: bool = True,
) -> Any:  # fmt: skip
    """The loss, which when it is computed also takes a step of training.

    Args:
        total_loss: the loss.
        optimizer: takes the step.
        global_step: the variable that counts steps; the graph's, made if need be, by default; None
            for none.
        update_ops: operations that run before; those of UPDATE_OPS if None.
        variables_to_train: what is trained; all trainable variables if None.
        transform_grads_fn: a function from pairs of gradient and variable to such pairs.
        summarize_gradients: whether gradients are summarized.
        gate_gradients, aggregation_method, colocate_gradients_with_ops: as of
            `Optimizer.compute_gradients`.
        check_numerics: whether the loss must be a finite number.
    """
    step = get_or_create_global_step() if global_step is _USE_GLOBAL_STEP else global_step
    known = dict.fromkeys(get_collection(GraphKeys.UPDATE_OPS))
    updates = known if update_ops is None else dict.fromkeys(update_ops)
    if not known.keys() <= updates.keys():
        logging.warning(
            "update_ops in create_train_op does not contain all the update_ops in "
            "GraphKeys.UPDATE_OPS"
        )
    if updates:
        with control_dependencies(list(updates)):
            barrier = no_op(name="update_barrier")
        total_loss = with_dependencies([barrier], total_loss)
    trained = trainable_variables() if variables_to_train is None else variables_to_train
    for variable in trained:
        assert variable.trainable or any(v is variable for v in trainable_variables())
    assert trained, "there is no variable to train"
    gradients = optimizer.compute_gradients(
        total_loss, trained, gate_gradients=gate_gradients, aggregation_method=aggregation_method,
        colocate_gradients_with_ops=colocate_gradients_with_ops,
    )  # fmt: skip
    if transform_grads_fn:
        gradients = transform_grads_fn(gradients)
    if summarize_gradients:
        with name_scope("summarize_grads"):
            add_gradients_summaries(gradients)
    applied = optimizer.apply_gradients(gradients, global_step=step)
    with name_scope("train_op"):
        if check_numerics:
            total_loss = checked_numbers(total_loss, "LossTensor is inf or nan")
        train_op = with_dependencies([applied], total_loss)
    collected = get_collection_ref(GraphKeys.TRAIN_OP)
    if train_op not in collected:
        collected.append(train_op)
    return train_op


def train(
    train_op: Any, logdir: Any, master: str = "", is_chief: bool = True, scaffold: Any = None,
    hooks: Any = None, chief_only_hooks: Any = None, save_checkpoint_secs: float | None = 600,
    save_summaries_steps: int | None = 100, config: Any = None, max_wait_secs: float = 7200,
    run_metadata: Any = None,
) -> Any:  # fmt: skip
    """Runs a step of training again and again, until a hook or the input ends it.

    Args:
        train_op: the step, as of `create_train_op`.
        logdir: where checkpoints and summaries go; None for nowhere.
        master, is_chief, scaffold, hooks, chief_only_hooks, save_checkpoint_secs,
            save_summaries_steps, config, max_wait_secs: as of `MonitoredTrainingSession`.
        run_metadata: a `RunMetadata` that each step is described in, or None.

    Returns:
        The last loss; None if there was no step.

    Raises:
        ValueError: there is no `logdir` for what is to be saved.
    """
    if logdir is None and is_chief:
        for name, wanted in (
            ("save_summaries_steps", save_summaries_steps),
            ("save_checkpoint_secs", save_checkpoint_secs),
        ):
            if wanted:
                raise ValueError(f"logdir cannot be None when {name} is not None")
    with MonitoredTrainingSession(
        master=master, is_chief=is_chief, checkpoint_dir=logdir, scaffold=scaffold, hooks=hooks,
        chief_only_hooks=chief_only_hooks, save_checkpoint_secs=save_checkpoint_secs,
        save_summaries_steps=save_summaries_steps, config=config, max_wait_secs=max_wait_secs,
    ) as session:  # fmt: skip
        loss = None
        while not session.should_stop():
            loss = session.run(train_op, run_metadata=run_metadata)
    return loss
