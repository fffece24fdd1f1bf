"""`StagingArea` and `MapStagingArea`: where one step leaves tensors for a later one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, name_scope
from opdock.ops.control import no_op
from opdock.ops.identity import identity
from opdock.ops.registry import get
from opdock.shapes import TensorShape


class BaseStagingArea:
    """What both kinds of areas share.

    Args:
        dtypes: the types of an element's components.
        shapes: their shapes; None where they are not known.
        names: keys of the components, if elements are dictionaries.
        shared_name: areas of one name are one area.
        capacity: how many elements there may be; 0 for any number.
        memory_limit: how many bytes; 0 for any number.

    Raises:
        ValueError: there is another number of shapes or names than of types, or the name is none.
    """

    def __init__(
        self, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        capacity: int = 0, memory_limit: int = 0,
    ) -> None:  # fmt: skip
        if shared_name is None:
            self._name = get_default_graph().unique_name(type(self).__name__)
        elif isinstance(shared_name, str):
            self._name = shared_name
        else:
            raise ValueError(f"shared_name must be a string, got {shared_name!r}")
        for what, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(dtypes):
                raise ValueError(
                    f"StagingArea {what} must be the same length as dtypes, got {len(given)} "
                    f"for {len(dtypes)}"
                )
        self._dtypes = dtypes
        self._shapes = [TensorShape(s) for s in shapes or [None] * len(dtypes)]
        self._names = names
        self._capacity, self._memory_limit = capacity, memory_limit
        # What is staged is kept where this is.
        with name_scope(f"{self._name}_root"):
            self._coloc_op = no_op()

    @property
    def name(self) -> str:
        """The name of the area."""
        return self._name

    @property
    def dtypes(self) -> Any:
        """The types of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of the components."""
        return self._shapes

    @property
    def names(self) -> Any:
        """The keys of the components, or None."""
        return self._names

    @property
    def capacity(self) -> int:
        """How many elements there may be, or 0."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes there may be, or 0."""
        return self._memory_limit

    # ------------------------------------------------------------ helpers
    def _node(self, op: str, *inputs: Any, dtypes: Any = None, name: str) -> Any:
        return get(op)(
            *inputs, dtypes=self._dtypes if dtypes is None else dtypes, shared_name=self._name,
            capacity=self._capacity, memory_limit=self._memory_limit, name=name,
        )  # fmt: skip

    def _check_put_dtypes(
        self, vals: Any, indices: Sequence[int] | None = None
    ) -> tuple[list[Tensor], list[int]]:
        """What is to be put, as tensors and their places.

        Raises:
            ValueError: types, static shapes, keys or numbers do not fit.
        """
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(vals).issubset(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. "
                    f"Dictionary: ({sorted(vals)}), Queue: ({sorted(self._names)})"
                )
            indices = [i for i, name in enumerate(self._names) if name in vals]
            vals = [vals[self._names[i]] for i in indices]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif indices is None:
            raise ValueError("Indices must be supplied when inserting a list of tensors")
        vals = list(vals) if isinstance(vals, (list, tuple)) else [vals]
        if len(indices) != len(vals):
            raise ValueError(
                f"Number of indices '{len(indices)}' doesn't match number of values '{len(vals)}'"
            )
        if len(vals) > len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs '{len(vals)}' vs '{len(self._dtypes)}'")
        tensors = []
        for value, i in zip(vals, indices, strict=True):
            if value.dtype != self._dtypes[i]:
                raise ValueError(f"Datatypes do not match. '{value.dtype}' != '{self._dtypes[i]}'")
            value.get_shape().assert_is_compatible_with(self._shapes[i])
            tensors.append(convert_to_tensor(value, self._dtypes[i], f"component_{i}"))
        return tensors, list(indices)

    def _here(self, tensors: Any) -> list[Tensor]:
        """The tensors on the device that is asked for now, if it is another than the area's."""
        found = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        if no_op().device != self._coloc_op.device:
            return [identity(t) for t in found]
        return found

    def _get_return_value(self, tensors: Any, indices: Sequence[int]) -> Any:
        """What a get or peek gives to the program: a list or, with names, a dictionary."""
        found = self._here(tensors)
        for tensor, i in zip(found, indices, strict=True):
            tensor.set_shape(self._shapes[i])
        if self._names:
            return {self._names[i]: t for t, i in zip(found, indices, strict=True)}
        return found


def _values(vals: Any) -> Iterable[Any]:
    if isinstance(vals, dict):
        return list(vals.values())
    return vals if isinstance(vals, (list, tuple)) else [vals]


class StagingArea(BaseStagingArea):
    """A queue on a device: elements come out in the order in which they went in.

    Its components stay on the device on which the area was made, so that a step finds there what an
    earlier one has brought. Takes the arguments of `BaseStagingArea`.
    """

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Adds an element; waits while the area is full.

        Args:
            values: a tensor, or a list, tuple or dictionary of them.
            name: a name for the operation.

        Raises:
            ValueError: they do not fit the area.
        """
        with name_scope(name, f"{self._name}_put", _values(values)) as scope:
            if not isinstance(values, (list, tuple, dict)):
                values = [values]
            tensors, _ = self._check_put_dtypes(values, range(len(values)))
            with colocate_with(self._coloc_op):
                return self._node("Stage", tensors, name=scope)  # type: ignore[no-any-return]

    def get(self, name: str | None = None) -> Any:
        """Takes the next element; waits while there is none.

        Returns:
            A list of tensors or, if the components have names, a dictionary.
        """
        with colocate_with(self._coloc_op):
            found = self._node("Unstage", name=name or f"{self._name}_get")
        return self._get_return_value(found, range(len(self._dtypes)))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The element in some place, which stays; waits until there are as many."""
        with colocate_with(self._coloc_op):
            found = self._node("StagePeek", index, name=name or f"{self._name}_peek")
        return self._get_return_value(found, range(len(self._dtypes)))

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are, an int32."""
        return self._node("StageSize", name=name or f"{self._name}_size")  # type: ignore[no-any-return]

    def clear(self, name: str | None = None) -> Operation:
        """Drops all elements."""
        return self._node("StageClear", name=name or f"{self._name}_clear")  # type: ignore[no-any-return]


class MapStagingArea(BaseStagingArea):
    """Elements by an int64 key, whose components can come and go one by one.

    An element is there when all of its components have come. What lacks some counts for the limit
    of memory, not for that of elements.

    Args:
        dtypes, shapes, names, shared_name, capacity, memory_limit: as for `StagingArea`.
        ordered: whether a `get` without a key gives the smallest key.
    """

    def __init__(
        self, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        ordered: bool = False, capacity: int = 0, memory_limit: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._kind = "OrderedMap" if ordered else "Map"

    def put(self, key: Any, vals: Any, indices: Any = None, name: str | None = None) -> Operation:
        """Adds components of an element; waits while the area is full.

        Args:
            key: of the element.
            vals: a tensor, a list or tuple of them, or a dictionary of some components.
            indices: which components they are, unless it is a dictionary.
            name: a name for the operation.

        Raises:
            ValueError: they do not fit the area.
        """
        with name_scope(name, f"{self._name}_put", _values(vals)) as scope:
            tensors, places = self._check_put_dtypes(vals, indices)
            with colocate_with(self._coloc_op):
                return self._node(  # type: ignore[no-any-return]
                    f"{self._kind}Stage", key, places, tensors, name=scope
                )

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Components of an element, which stay; waits until it is complete.

        Args:
            key: of the element.
            indices: a list of numbers or names of components; all by default.
            name: a name for the operation.

        Raises:
            TypeError: `indices` is no such list.
            ValueError: there is no such component.
        """
        places, types = self._places(indices)
        name = name or f"{self._name}_pop"
        with colocate_with(self._coloc_op):
            found = self._node(f"{self._kind}Peek", key, places, dtypes=types, name=name)
        return self._get_return_value(found, places)

    def get(self, key: Any = None, indices: Any = None, name: str | None = None) -> Any:
        """Takes components of an element; waits until it is complete.

        Args:
            key: of the element; by default that of any.
            indices: as for `peek`.
            name: a name for the operation.

        Returns:
            (key, components): these as a list or, with names, a dictionary.
        """
        places, types = self._places(indices)
        if key is None:
            name = name or f"{self._name}_get_nokey"
            with colocate_with(self._coloc_op):
                key, found = self._node(
                    f"{self._kind}UnstageNoKey", places, dtypes=types, name=name
                )
            (key,) = self._here(key)
        else:
            name = name or f"{self._name}_get"
            with colocate_with(self._coloc_op):
                found = self._node(f"{self._kind}Unstage", key, places, dtypes=types, name=name)
        return key, self._get_return_value(found, places)

    def _places(self, indices: Any) -> tuple[list[int], list[Any]]:
        if indices is None:
            indices = list(range(len(self._dtypes)))
        if not isinstance(indices, (list, tuple)):
            raise TypeError(f"Invalid indices type '{type(indices)}'")
        if not indices:
            raise ValueError("Empty indices")
        if all(isinstance(i, str) for i in indices):
            if self._names is None:
                raise ValueError(
                    f"String indices provided '{indices}', but this Staging Area was not created "
                    "with names."
                )
            unknown = [n for n in indices if n not in self._names]
            if unknown:
                raise ValueError(
                    f"Named index '{unknown[0]}' not in Staging Area names '{self._names}'"
                )
            indices = [list(self._names).index(n) for n in indices]
        elif not all(isinstance(i, int) for i in indices):
            raise TypeError(f"Mixed types in indices '{indices}'. May only be str or int")
        return list(indices), [self._dtypes[i] for i in indices]

    def size(self, name: str | None = None) -> Tensor:
        """How many elements are complete, an int32."""
        return self._node(f"{self._kind}Size", name=name or f"{self._name}_size")  # type: ignore[no-any-return]

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """How many elements lack components, an int32."""
        return self._node(  # type: ignore[no-any-return]
            f"{self._kind}IncompleteSize", name=name or f"{self._name}_incomplete_size"
        )

    def clear(self, name: str | None = None) -> Operation:
        """Drops all elements."""
        return self._node(f"{self._kind}Clear", name=name or f"{self._name}_clear")  # type: ignore[no-any-return]
