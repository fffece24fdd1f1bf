"""Tensors that stay in a session between its steps, by handle."""

from __future__ import annotations

from typing import Any

from opdock import dtypes
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, device
from opdock.ops.identity import placeholder
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs
from opdock.shapes import Shape

__all__ = ["delete_session_tensor", "get_session_handle", "get_session_tensor"]

get_session_handle_op = define_op(
    "GetSessionHandle", "value: T -> handle: string", "T: type", stateful=True
)
get_session_handle_v2_op = define_op(
    "GetSessionHandleV2", "value: T -> handle: resource", "T: type", stateful=True
)
get_session_tensor_op = define_op(
    "GetSessionTensor", "handle: string -> value: dtype", "dtype: type", stateful=True
)
delete_session_tensor_op = define_op("DeleteSessionTensor", "handle: string ->", stateful=True)
for _op in (
    get_session_handle_op, get_session_handle_v2_op, get_session_tensor_op,
    delete_session_tensor_op,
):  # fmt: skip
    _op.declare(Traits(builtin=True))
    _op.not_differentiable()
delete_session_tensor_op.shape(no_outputs)


@get_session_handle_op.shape
@get_session_handle_v2_op.shape
def _scalar(sig: ShapeSig) -> Shape:
    return ()


@get_session_tensor_op.shape
def _unknown(sig: ShapeSig) -> Shape:
    return None


def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """The handle of a tensor that stays in the session, on its device, when the step is over.

    What is fetched is a `TensorHandle`: its `eval()` gives the value, its `handle` is text to feed
    to what `get_session_tensor` makes, and it can be fed itself in the place of any tensor. The
    value goes when the handle does, or with its `delete()`.

    Raises:
        TypeError: `data` is no tensor.
    """
    if not isinstance(data, Tensor):
        raise TypeError("`data` must be of type Tensor.")
    with colocate_with(data):
        return get_session_handle_op(data, name=name)  # type: ignore[no-any-return]


def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """A placeholder for the text of a handle, and the tensor that stays in the session under it.

    Args:
        handle: the text of a handle, which says on what device the tensor is.
        dtype: the tensor's type.
        name: a name for the operation.
    """
    with device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, get_session_tensor_op(holder, dtype=dtype, name=name)


def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """A placeholder for the text of a handle, and the operation that forgets its tensor."""
    with device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, delete_session_tensor_op(holder, name=name)


def _device_of(handle: Any) -> str:
    text = handle.decode() if isinstance(handle, bytes) else str(handle)
    return text.rpartition(";")[2]
