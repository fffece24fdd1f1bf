"""The losses collection: what `compute_weighted_loss` adds to and training code sums."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.ops.support.nn_util import emit


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to a collection.

    Args:
        loss: a tensor.
        loss_collection: the collection's name; None adds nothing.
    """
    # Nobody would take it out again where operations run as they are made.
    if loss_collection and not executing_eagerly():
        add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection.

    Args:
        scope: a name prefix (a regular expression) to filter by.
        loss_collection: the collection's name.

    Returns:
        A list of tensors.
    """
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The regularization losses.

    Args:
        scope: a name prefix (a regular expression) to filter by.

    Returns:
        A list of tensors.
    """
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """The sum of the regularization losses.

    Args:
        scope: a name prefix (a regular expression) to filter by.
        name: the name of the returned tensor.

    Returns:
        A scalar: 0.0 when there are none.
    """
    losses = get_regularization_losses(scope)
    if not losses:
        return constant(0.0)
    return emit("AddN", losses, name=name)  # type: ignore[no-any-return]


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses.

    Args:
        add_regularization_losses: whether regularization losses are part of the sum.
        name: the name of the returned tensor.
        scope: a name prefix (a regular expression) to filter by.

    Returns:
        A scalar.

    Raises:
        ValueError: there is no loss at all.
    """
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses = [*losses, *get_regularization_losses(scope=scope)]
    if not losses:
        raise ValueError(
            "There are no losses to add up: neither the collection 'losses' nor "
            "'regularization_losses' has any."
        )
    return emit("AddN", losses, name=name)  # type: ignore[no-any-return]
