"""Kernels of iterators, and of what asks a dataset as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opdock import shapes
from opdock.dtypes import DType
from opdock.io.files import tf_errors
from opdock.io.records import new_file
from opdock.kernels.data.base import Dataset, Memory, check_fits, declared, invalid
from opdock.kernels.data.binding import Make, boxed, hosted, listed, resources_of, scalar_text
from opdock.kernels.data.context import Context
from opdock.kernels.data.iterators import IteratorResource, iterator_of, single_element
from opdock.kernels.data.memory import dataset_anywhere, dataset_of
from opdock.kernels.optionals import Optional, optional_of
from opdock.kernels.portable import PRIORITY, portable
from opdock.kernels.select.signature import NodeSig

__all__: list[str] = []

_KIND = "iterator"


# ---------------------------------------------------------------- resources
def _new(sig: NodeSig, name: str) -> Callable[[], IteratorResource]:
    types, element_shapes = declared(sig)
    resources = resources_of(sig)
    return lambda: IteratorResource(name, types, element_shapes, resources)


@hosted("Iterator", "IteratorV2")
def iterator(sig: NodeSig) -> Make:
    """The iterator of a name: the node's own, or the one that it shares."""
    attrs, resources = sig.attrs, resources_of(sig)
    types, element_shapes = declared(sig)
    name = attrs["shared_name"] or sig.name
    make = _new(sig, name)
    find = resources.get_or_create if attrs["shared_name"] else resources.get_or_create_own

    def run() -> IteratorResource:
        found: IteratorResource = find(_KIND, attrs["container"], name, make)
        if found.types != tuple(types):
            check_fits(found.types, found.shapes, types, element_shapes)
        return found

    return run


@hosted("AnonymousIterator")
def anonymous_iterator(sig: NodeSig) -> Make:
    """A new iterator each time."""
    return _new(sig, "anonymous")


@hosted("AnonymousIteratorV2", outputs="handle deleter")
def anonymous_iterator_v2(sig: NodeSig) -> Make:
    """A new iterator each time, and what `DeleteIterator` asks for."""
    make = _new(sig, "anonymous")

    def run() -> tuple[IteratorResource, Any]:
        found = make()
        return found, boxed(found)

    return run


@hosted("DeleteIterator", inputs="handle deleter", outputs="")
def delete_iterator(sig: NodeSig) -> Make:
    """Closes an iterator, and forgets it."""
    resources = resources_of(sig)

    def run(handle: Any, deleter: Any) -> tuple[()]:
        found = iterator_of(handle)
        resources.delete(f"{_KIND}_handle", "", found.handle.decode())
        found.close()
        return ()

    return run


@hosted("OneShotIterator")
def one_shot_iterator(sig: NodeSig) -> Make:
    """The iterator of a name, over what a function makes the first time."""

    resource, factory = iterator(sig), sig.function("dataset_factory")

    def run() -> IteratorResource:
        found: IteratorResource = resource()
        found.begin_once(lambda: dataset_anywhere(factory.instance()(())[0]))
        return found

    return run


@hosted("IteratorToStringHandle", inputs="resource_handle", outputs="string_handle")
def to_string_handle(sig: NodeSig) -> Make:
    """The handle as a text, by which another step finds the iterator."""
    resources = resources_of(sig)

    def run(handle: Any) -> Any:
        found = iterator_of(handle)
        resources.get_or_create(f"{_KIND}_handle", "", found.handle.decode(), lambda: found)
        return boxed(found.handle)

    return run


@hosted(
    "IteratorFromStringHandle", "IteratorFromStringHandleV2", inputs="string_handle",
    outputs="resource_handle",
)  # fmt: skip
def from_string_handle(sig: NodeSig) -> Make:
    """The iterator behind a text."""
    types: list[DType] = [t.base_dtype for t in sig.attrs["output_types"]]
    element_shapes = [shapes.as_shape(s) for s in sig.attrs["output_shapes"]]
    resources = resources_of(sig)

    def run(handle: Any) -> IteratorResource:
        text = scalar_text(handle, "string_handle")
        found: IteratorResource | None = resources.get(f"{_KIND}_handle", "", text)
        if found is None:
            raise invalid(
                f"Could not parse string handle: {text!r}"
                if not text
                else f"The string handle {text!r} is not one of an iterator of this session"
            )
        if types:
            check_fits(types, element_shapes, found.types, found.shapes)
        return found

    return run


# ---------------------------------------------------------------- use
@hosted("MakeIterator", inputs="dataset iterator", outputs="")
def make_iterator(sig: NodeSig) -> Make:
    """Begins to iterate."""

    def run(dataset: Any, handle: Any) -> tuple[()]:
        iterator_of(handle).begin(dataset_anywhere(dataset))
        return ()

    return run


def _beside_the_host(sig: NodeSig) -> bool | str:
    if sig.device is None or sig.device.is_host:
        return "elements for the host come from the kernel for any device"
    return True


@portable(
    "IteratorGetNext", "IteratorGetNextSync", host_inputs=("iterator",), keeps=(),
    priority=PRIORITY + 1, when=_beside_the_host,
)  # fmt: skip
def get_next_there(xp: Any, sig: NodeSig) -> Make:
    """The next element, in the memory of the device: where it lies, if it is ahead there."""
    return _get_next(sig, sig.device)


@hosted("IteratorGetNext", "IteratorGetNextSync", inputs="iterator", outputs="components", keeps=())
def get_next(sig: NodeSig) -> Make:
    """The next element, in the memory of the host."""
    return _get_next(sig, None)


def _get_next(sig: NodeSig, memory: Memory | None) -> Make:
    types, element_shapes = declared(sig)
    checked: IteratorResource | None = None

    def run(handle: Any) -> Any:
        nonlocal checked
        found = iterator_of(handle)
        if found is not checked:
            if found.types:
                check_fits(types, element_shapes, found.types, found.shapes)
            checked = found
        return listed(found.next(memory))

    return run


@hosted("IteratorGetNextAsOptional", inputs="iterator", outputs="optional")
def get_next_as_optional(sig: NodeSig) -> Make:
    """The next element, or none."""
    return lambda handle: Optional(iterator_of(handle).next_or_none())


@hosted("SerializeIterator", inputs="resource_handle", outputs="serialized")
def serialize_iterator(sig: NodeSig) -> Make:
    """Where an iterator stands."""
    return lambda handle: boxed(iterator_of(handle).save())


@hosted("DeserializeIterator", inputs="resource_handle serialized", outputs="")
def deserialize_iterator(sig: NodeSig) -> Make:
    """Has an iterator stand elsewhere."""

    def run(handle: Any, serialized: Any) -> tuple[()]:
        iterator_of(handle).restore(serialized)
        return ()

    return run


# ---------------------------------------------------------------- whole datasets
@hosted("DatasetToSingleElement", inputs="dataset", outputs="components")
def to_single_element(sig: NodeSig) -> Make:
    """The one element of a dataset."""
    return lambda dataset: listed(single_element(dataset_of(dataset)))


@hosted("DatasetCardinality", inputs="input_dataset", outputs="cardinality")
def cardinality(sig: NodeSig) -> Make:
    """How many elements there are, as far as one can tell."""
    return lambda dataset: np.array(dataset_of(dataset).cardinality(), np.int64)


@hosted("DatasetToTFRecord", inputs="input_dataset filename compression_type", outputs="")
def to_tf_record(sig: NodeSig) -> Make:
    """Writes the elements, strings, as records."""

    def run(dataset: Any, filename: Any, compression: Any) -> tuple[()]:
        path, kind = scalar_text(filename, "filename"), scalar_text(compression, "compression_type")
        source = dataset_of(dataset)
        elements = source.iterator(Context(source))
        try:
            with tf_errors(path), new_file(path, kind) as writer:
                while (element := elements.next()) is not None:
                    writer.write(element[0].item())
        finally:
            elements.close()
        return ()

    return run


@hosted(
    "WrapDatasetVariant", "UnwrapDatasetVariant", inputs="input_handle", outputs="output_handle"
)
def wrap(sig: NodeSig) -> Make:
    """The same dataset."""

    def run(handle: Any) -> Dataset:
        return dataset_of(handle)

    return run


# ---------------------------------------------------------------- optionals
@hosted("OptionalFromValue", inputs="components", outputs="optional")
def optional_from_value(sig: NodeSig) -> Make:
    """An element."""
    return lambda *components: Optional(components)


@hosted("OptionalNone", outputs="optional")
def optional_none(sig: NodeSig) -> Make:
    """No element."""
    return lambda: Optional(None)


@hosted("OptionalHasValue", inputs="optional", outputs="has_value")
def optional_has_value(sig: NodeSig) -> Make:
    """Whether there is an element."""
    return lambda handle: np.bool_(optional_of(handle).element is not None)


@hosted("OptionalGetValue", inputs="optional", outputs="components")
def optional_get_value(sig: NodeSig) -> Make:
    """The element."""
    types, _ = declared(sig)

    def run(handle: Any) -> Any:
        element = optional_of(handle).element
        if element is None:
            raise invalid("The given optional does not have a value.")
        if len(element) != len(types):
            raise invalid(
                f"The given optional has {len(element)} components, expected {len(types)}."
            )
        return listed(element)

    return run
