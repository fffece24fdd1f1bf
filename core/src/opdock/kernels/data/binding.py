"""How kernels of dataset ops are declared: host arrays in, a dataset out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opdock.kernels.data.base import Captured, Dataset, invalid, scalar_int
from opdock.kernels.data.memory import dataset_of
from opdock.kernels.portable import portable
from opdock.kernels.select.cells import Resources
from opdock.kernels.select.signature import NodeSig

__all__ = [
    "boxed",
    "captured",
    "hosted",
    "listed",
    "resources_of",
    "scalar_text",
    "texts",
    "unary",
]

Make = Callable[..., Any]
Bind = Callable[[NodeSig], Make]


def hosted(
    *ops: str,
    inputs: str = "",
    outputs: str = "handle",
    module: str = "",
    keeps: tuple[str, ...] | None = None,
) -> Callable[[Bind], Bind]:
    """Declares a kernel `bind(sig)` all of whose arguments and results are in host memory.

    Args:
        *ops: the op types.
        inputs, outputs: the names of the arguments.
        module: whose kernel it is, where another one made `bind`.
        keeps: the arguments and results whose arrays it may hold after the call; None for all.
    """

    def attach(bind: Bind) -> Bind:
        def on_host(xp: Any, sig: NodeSig) -> Make:
            make = bind(sig)
            if outputs != "handle":
                return make

            def made(*arguments: Any) -> Any:
                found = make(*arguments)
                if isinstance(found, Dataset):
                    found.made_by(sig.op, arguments)
                return found

            return made

        functools.update_wrapper(on_host, bind)
        on_host.__module__ = module or bind.__module__
        portable(
            *ops, host_inputs=tuple(inputs.split()), host_outputs=tuple(outputs.split()),
            keeps=keeps,
        )(on_host)  # fmt: skip
        return bind

    return attach


def unary(
    names: Sequence[str], make: Callable[..., Dataset],
    source_of: Callable[[Any], Dataset] = dataset_of,
) -> Bind:  # fmt: skip
    """A kernel that makes a dataset of another one and of integers.

    Args:
        names: what the integers are called.
        make: `make(dataset, *integers)`.
        source_of: the dataset of a handle: `dataset_anywhere` where elements are handed on.
    """

    def bind(sig: NodeSig) -> Make:
        def run(source: Any, *values: Any) -> Dataset:
            given = [scalar_int(v, f"`{n}`") for n, v in zip(names, values, strict=True)]
            return make(source_of(source), *given)

        return run

    return bind


def captured(sig: NodeSig, attr: str, values: Sequence[Any]) -> Captured:
    """The function that an attribute names, with the values that it captured."""
    return Captured(sig.function(attr), values)


def boxed(value: Any) -> Any:
    """A scalar array of a variant or a string."""
    out = np.empty((), object)
    out[()] = value
    return out


def listed(element: tuple[Any, ...]) -> Any:
    """An element as a kernel gives several results."""
    return element[0] if len(element) == 1 else element


def resources_of(sig: NodeSig) -> Resources:
    """Resources for what may outlive the session: another may go on with what it has begun."""
    assert sig.resources is not None
    return sig.resources.lasting


def texts(value: Any) -> list[str]:
    """A vector of strings as texts."""
    return [scalar_text(item, "name") for item in np.asarray(value, object).reshape(-1)]


def scalar_text(value: Any, what: str) -> str:
    """A string argument.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    array = np.asarray(value, object)
    if array.ndim:
        raise invalid(f"{what} must be a scalar")
    item = array.item()
    return item.decode() if isinstance(item, bytes) else str(item)
