"""`tf.data.Iterator`: where a session stands in a dataset."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator as PythonIterator
from typing import Any, Final

from opdock import dtypes
from opdock.data.optional import optional_of_next
from opdock.data.util import nest, structure
from opdock.graph.nodes.collections import add_to_collection
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import colocate_with, device, name_scope
from opdock.ops.data_iterators import (
    deserialize_iterator_op,
    iterator_from_string_handle_v2_op,
    iterator_get_next_op,
    iterator_to_string_handle_op,
    iterator_v2_op,
    make_iterator_op,
    serialize_iterator_op,
)
from opdock.shapes import TensorShape, as_tensor_shape
from opdock.train.saveable import SaveableObject, SaveSpec

__all__ = ["GLOBAL_ITERATORS", "Iterator"]

GLOBAL_ITERATORS: Final = "iterators"
GET_NEXT_CALL_WARNING_THRESHOLD: Final = 32
GET_NEXT_CALL_WARNING_MESSAGE: Final = (
    "An unusually high number of `Iterator.get_next()` calls was detected. Each call adds "
    "operations to the graph: call it once, outside the loop, and run its result in the loop."
)
_serial = itertools.count()


class Iterator:
    """A place in a dataset, which a session keeps from step to step.

    Args:
        iterator_resource: the resource.
        initializer: the operation that sets it to the beginning of a dataset, or None.
        output_types, output_shapes, output_classes: what elements are: nested structures of
            types, of shapes and of `tf.Tensor` or `tf.SparseTensor`.

    Raises:
        ValueError: one of the structures is missing.
    """

    def __init__(
        self, iterator_resource: Tensor, initializer: Operation | None, output_types: Any,
        output_shapes: Any, output_classes: Any,
    ) -> None:  # fmt: skip
        if output_types is None or output_shapes is None or output_classes is None:
            raise ValueError(
                "If `structure` is not specified, all of `output_types`, `output_shapes`, and "
                "`output_classes` must be specified."
            )
        self._iterator_resource = iterator_resource
        self._initializer = initializer
        self._element_spec = structure.convert_legacy_structure(
            output_types, output_shapes, output_classes
        )
        self._string_handle = iterator_to_string_handle_op(iterator_resource)
        self._get_next_call_count = 0
        add_to_collection(GLOBAL_ITERATORS, iterator_resource)

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:  # fmt: skip
        """An iterator for datasets of one kind of elements, which `make_initializer` sets.

        Args:
            output_types: the structure of types.
            output_shapes: the structure of shapes; by default they may be any.
            shared_name: the name under which sessions share the iterator.
            output_classes: the structure of classes; `tf.Tensor` by default.

        Raises:
            TypeError, ValueError: the structures differ in form.
        """
        parts = _structures(output_types, output_shapes, output_classes)
        attrs = structure.flat_structure(structure.convert_legacy_structure(*parts))
        with _on_host():
            resource = iterator_v2_op(container="", shared_name=shared_name or "", **attrs)
        return Iterator(resource, None, *parts)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator that a string handle, often fed, stands for in a step.

        Args:
            string_handle: a scalar string, a value of `Iterator.string_handle()`.
            output_types, output_shapes, output_classes: as of `from_structure`.
        """
        parts = _structures(output_types, output_shapes, output_classes)
        attrs = structure.flat_structure(structure.convert_legacy_structure(*parts))
        handle = convert_to_tensor(string_handle, dtype=dtypes.string)
        with _on_host():
            resource = iterator_from_string_handle_v2_op(handle, **attrs)
        return Iterator(resource, None, *parts)

    @property
    def initializer(self) -> Operation:
        """The operation that sets the iterator to the beginning of its dataset.

        Raises:
            ValueError: it sets itself.
        """
        if self._initializer is None:
            raise ValueError("Iterator does not have an initializer.")
        return self._initializer

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that sets the iterator to the beginning of a dataset.

        Raises:
            TypeError: the dataset's elements are of another kind.
        """
        with name_scope(name, "make_initializer") as scope:
            spec = dataset.element_spec
            types, shapes = structure.legacy_types(spec), structure.legacy_shapes(spec)
            classes = structure.legacy_classes(spec)
            nest.assert_same_structure(self.output_types, types)
            nest.assert_same_structure(self.output_shapes, shapes)
            if nest.flatten(self.output_classes) != nest.flatten(classes):
                raise TypeError(
                    f"Expected output classes {self.output_classes!r} but got dataset with output "
                    f"class {classes!r}."
                )
            if nest.flatten(self.output_types) != nest.flatten(types):
                raise TypeError(
                    f"Expected output types {self.output_types!r} but got dataset with output "
                    f"types {types!r}."
                )
            pairs = zip(nest.flatten(self.output_shapes), nest.flatten(shapes), strict=True)
            if not all(a.is_compatible_with(b) for a, b in pairs):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got "
                    f"dataset with output shapes {shapes!r}."
                )
        with colocate_with(self._iterator_resource):
            made: Operation = make_iterator_op(
                dataset._variant_tensor, self._iterator_resource, name=scope
            )
        return made

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as a nested structure of tensors: another one in each step.

        When a session runs them, OutOfRangeError says that there is no other element, and
        FailedPreconditionError that the iterator was not initialized.

        Args:
            name: a name for the operation.
        """
        self._get_next_call_count += 1
        if self._get_next_call_count > GET_NEXT_CALL_WARNING_THRESHOLD:
            warnings.warn(GET_NEXT_CALL_WARNING_MESSAGE, stacklevel=2)
        attrs = structure.flat_structure(self._element_spec)
        flat = iterator_get_next_op(self._iterator_resource, name=name, **attrs)
        return structure.from_tensor_list(self._element_spec, flat)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A scalar string that stands for this iterator in a session."""
        if name is None:
            own: Tensor = self._string_handle
            return own
        found: Tensor = iterator_to_string_handle_op(self._iterator_resource, name=name)
        return found

    @property
    def element_spec(self) -> Any:
        """The structure of specs of an element."""
        return self._element_spec

    @property
    def output_classes(self) -> Any:
        """The structure of classes of an element."""
        return structure.legacy_classes(self._element_spec)

    @property
    def output_shapes(self) -> Any:
        """The structure of shapes of an element."""
        return structure.legacy_shapes(self._element_spec)

    @property
    def output_types(self) -> Any:
        """The structure of types of an element."""
        return structure.legacy_types(self._element_spec)

    def _staged_loop(self, extra_test: Any, body: Any, state: Any) -> None:
        from opdock.data.loops import over_iterator

        over_iterator(self, extra_test, body, state)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"ITERATOR": lambda name: IteratorSaveable(self._iterator_resource, name)}


class IteratorSaveable(SaveableObject):
    """Where an iterator stands, as a Saver saves it."""

    def __init__(self, iterator_resource: Tensor, name: str) -> None:
        state = serialize_iterator_op(iterator_resource)
        super().__init__(iterator_resource, [SaveSpec(state, "", f"{name}-state")], name)

    def restore(self, restored_tensors: list[Tensor], restored_shapes: Any) -> Operation:
        """Has the iterator stand there again."""
        with colocate_with(self.op):
            made: Operation = deserialize_iterator_op(self.op, restored_tensors[0])
        return made


def generate_shared_name(prefix: str) -> str:
    """A name that no other iterator has."""
    return f"{prefix}{next(_serial)}"


def get_next_as_optional(iterator: Iterator) -> Any:
    """`tf.data.experimental.get_next_as_optional`: the next element, or none at the end.

    Args:
        iterator: an iterator.
    """
    return optional_of_next(iterator)


def _structures(types: Any, shapes: Any, classes: Any) -> tuple[Any, Any, Any]:
    types = nest.map_structure(dtypes.as_dtype, types)
    if shapes is None:
        shapes = nest.map_structure(lambda _: TensorShape(None), types)
    else:
        shapes = nest.map_structure_up_to(types, as_tensor_shape, shapes)
    if classes is None:
        classes = nest.map_structure(lambda _: Tensor, types)
    nest.assert_same_structure(types, shapes)
    return types, shapes, classes


@contextlib.contextmanager
def _on_host() -> PythonIterator[None]:
    """The host's memory, where the user says nothing of devices."""
    if get_default_graph()._scopes.devices:
        yield
    else:
        with device("/cpu:0"):
            yield
