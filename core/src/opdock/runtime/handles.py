"""Handles of tensors that stay in a session between its steps."""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from opdock import errors
from opdock.compiler.ir.block import Node
from opdock.dtypes import DType
from opdock.runtime.resources import ResourceManager
from opdock.util.interrupts import finalizer

__all__ = ["TensorHandle", "delete_tensor", "keep_tensor", "kept_tensor"]

_KIND: Final = "session_tensor"
_numbers = itertools.count(1)


class _Kept:
    """A value, and the target in whose memory it is (None for the host's)."""

    def __init__(self, value: Any, target: Any) -> None:
        self.value = value
        self._target = None if target is None or target.is_host else target

    def on(self, target: Any) -> Any:
        """The value in the memory of a target; None for the host's."""
        wanted = None if target is None or target.is_host else target
        if wanted is self._target:
            return self.value
        host = self.value if self._target is None else self._target.device.download(self.value)
        return host if wanted is None else wanted.device.upload(host)


class TensorHandle:
    """A tensor that stays in its session until the handle goes, or `delete` is called."""

    _owns = False

    def __init__(self, handle: str, dtype: DType, resources: ResourceManager) -> None:
        self._handle = handle
        self._dtype = dtype
        self._resources = resources
        self._owns = True

    @finalizer
    def __del__(self) -> None:
        if self._owns:
            self._resources.delete(_KIND, "", self._handle)

    def __str__(self) -> str:
        return self._handle

    @property
    def handle(self) -> str:
        """The text to feed to what `tf.get_session_tensor` makes."""
        return self._handle

    def _check_owned(self) -> None:
        if not self._owns:
            raise TypeError(f"Persistent tensor {self._handle} may have already been deleted.")

    def eval(self) -> Any:
        """The value.

        Raises:
            TypeError: the tensor is no longer the handle's.
        """
        self._check_owned()
        array = self._fed_value()
        return np.copy(array)[()]

    def delete(self) -> None:
        """Forgets the tensor.

        Raises:
            TypeError: the tensor is no longer the handle's.
        """
        self._check_owned()
        self._owns = False
        self._resources.delete(_KIND, "", self._handle)

    def get_raw_handle(self) -> str:
        """The text, whose tensor stays until it is deleted by `tf.delete_session_tensor`."""
        self._owns = False
        return self._handle

    def _fed_value(self) -> Any:
        """What it means to feed the handle in the place of a tensor."""
        return _find(self._resources, self._handle).on(None)


def _find(resources: ResourceManager, handle: str) -> _Kept:
    found: _Kept | None = resources.get(_KIND, "", handle)
    if found is None:
        raise errors.InvalidArgumentError(
            None, None, f"The tensor with handle '{handle}' is not in the session store."
        )
    return found


def _text(handle: Any) -> str:
    item = handle.item() if isinstance(handle, np.ndarray) else handle
    return item.decode() if isinstance(item, bytes) else str(item)


# ---------------------------------------------------------------- what the ops do
def keep_tensor(node: Node, resources: ResourceManager) -> Any:
    """Of GetSessionHandle: keeps a value and hands out its handle."""
    target, dtype = node.target, node.inputs[0].dtype.base_dtype
    where = "" if target is None else target.name

    def keep(value: Any) -> TensorHandle:
        handle = f"{node.name};{next(_numbers)};{where}"
        resources.get_or_create(_KIND, "", handle, lambda: _Kept(value, target))
        return TensorHandle(handle, dtype, resources)

    return keep


def kept_tensor(node: Node, resources: ResourceManager) -> Any:
    """Of GetSessionTensor: the value of a handle."""
    wanted = node.out_dtypes[0].np

    def find(handle: Any) -> Any:
        value = _find(resources, _text(handle)).on(node.target)
        given = getattr(value, "dtype", wanted)
        if given != wanted:
            raise errors.InvalidArgumentError(
                None, None,
                f"Type mismatch for the tensor with handle '{_text(handle)}': it is {given}, but "
                f"{wanted} is asked for.",
            )  # fmt: skip
        return value

    return find


def delete_tensor(node: Node, resources: ResourceManager) -> Any:
    """Of DeleteSessionTensor: forgets the value of a handle."""

    def delete(handle: Any) -> None:
        _find(resources, _text(handle))
        resources.delete(_KIND, "", _text(handle))

    return delete
