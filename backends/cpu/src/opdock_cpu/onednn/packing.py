"""Arguments that a primitive wants in a layout of its own."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from opdock_cpu.onednn.memory import Desc, aligned
from opdock_cpu.onednn.parts import Parts
from opdock_cpu.onednn.primitive import Primitive, reorder

__all__ = ["Call", "Kept", "Reordered", "settled"]

Array = npt.NDArray[Any]
_SHARED_FROM = 1 << 22


class Reordered:
    """An argument that is brought into a primitive's own layout, or taken out of it.

    Args:
        plain: the layout of the caller's arrays.
        wanted: the primitive's.
        inward: whether the primitive reads the argument.
    """

    def __init__(self, plain: Desc, wanted: Desc, inward: bool = True) -> None:
        self.same = plain.same(wanted)
        self.desc = wanted
        self.size = wanted.size
        self._copy: Primitive | None = None
        if not self.same:
            source, target = (plain, wanted) if inward else (wanted, plain)
            # Little data takes longer to share out over threads than to copy.
            self._copy = reorder(source, target, 1 if self.size < _SHARED_FROM else None)
        self._free: list[Array] = []

    def take(self) -> Array:
        """A buffer in the primitive's layout; give it back when done."""
        try:
            return self._free.pop()
        except IndexError:
            return aligned(self.size)

    def give(self, buffer: Array) -> None:
        """Returns a buffer that `take` gave."""
        self._free.append(buffer)

    def copy(self, source: Array, target: Array) -> None:
        """From the caller's layout to the primitive's, or back."""
        assert self._copy is not None
        self._copy.run(source, target)


class Kept:
    """What is derived from arrays that mostly stay the same, such as the values of variables.

    An array that somebody has a weak reference to is replaced, never changed (`may_write`), so the
    same arrays give the same result.

    Args:
        make: derives the result from the arrays.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._last: tuple[Any, ...] = ((), None)

    def __call__(self, *arrays: Any) -> Any:
        """The result for these very arrays, derived anew only when they are others."""
        refs, made = self._last
        if refs:
            for ref, array in zip(refs, arrays):
                if ref() is not array:
                    break
            else:
                return made
        made = self._make(*arrays)
        # Weak: the values that a training step replaces are not held on to.
        self._last = (tuple(weakref.ref(a) for a in arrays), made)
        return made


class Call:
    """A primitive with its arguments in the caller's layouts.

    Args:
        primitive: what to run, at once or in parts.
        plain: the caller's layout of each argument.
        outputs: which of the arguments are written.
    """

    def __init__(
        self, primitive: Primitive | Parts, plain: Sequence[Desc], outputs: Sequence[int]
    ) -> None:
        self.primitive = primitive
        layouts = [
            Reordered(ours, theirs, i not in outputs)
            for i, (ours, (_, theirs)) in enumerate(zip(plain, primitive.args, strict=True))
        ]
        self._inward = {i: r for i, r in enumerate(layouts) if not r.same and i not in outputs}
        self._outward = {i: r for i, r in enumerate(layouts) if not r.same and i in outputs}
        self._direct = primitive.run

    @property
    def implementation(self) -> str:
        """The implementation's name."""
        return self.primitive.plan.implementation

    def lays_out(self, index: int) -> bool:
        """Whether the primitive wants an input in another layout than the caller's."""
        return index in self._inward

    def keep(self, index: int) -> Callable[[Array], Array]:
        """Leaves the layout of an input to the caller: returns what lays it out."""
        layout = self._inward.pop(index, None)

        def pack(array: Array) -> Array:
            if layout is None:
                return np.ascontiguousarray(array)
            buffer = aligned(layout.size)
            layout.copy(array, buffer)
            return buffer

        return pack

    def bind(self) -> Callable[..., None]:
        """The function to call with one array an argument."""
        if not self._inward and not self._outward:
            return self._direct
        inward, outward = list(self._inward.items()), list(self._outward.items())
        direct = self._direct

        def run(*arrays: Array) -> None:
            args = list(arrays)
            for i, layout in inward:
                args[i] = layout.take()
                layout.copy(arrays[i], args[i])
            for i, layout in outward:
                args[i] = layout.take()
            direct(*args)
            for i, layout in outward:
                layout.copy(args[i], arrays[i])
                layout.give(args[i])
            for i, layout in inward:
                layout.give(args[i])

        return run


class LaysOut(Protocol):
    """What `settled` asks of a `Call`."""

    def keep(self, index: int) -> Callable[[Array], Array]: ...

    def bind(self) -> Callable[..., None]: ...


def settled(direct: Callable[..., None], packed: LaysOut, index: int) -> Callable[..., None]:
    """`direct`, but `packed` while an input is the array of the call before.

    A matrix that every step replaces is not worth laying out; one that stays is, even though
    nobody says beforehand whether a variable is being trained.

    Args:
        direct: takes the caller's layouts.
        packed: the same with an input in a layout of its own.
        index: that input; its array must be replaced, never changed, as a variable's is.
    """
    laid_out, run = Kept(packed.keep(index)), packed.bind()
    last: Callable[[], Any] = tuple

    def call(*arrays: Array) -> None:
        nonlocal last
        array = arrays[index]
        if last() is array:
            run(*arrays[:index], laid_out(array), *arrays[index + 1 :])
        else:
            last = weakref.ref(array)
            direct(*arrays)

    return call
