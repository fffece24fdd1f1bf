"""What a graph contains: operations by name, tensors, and collections."""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from opdock import errors
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.nearest import near
from opdock.version import GRAPH_DEF_VERSION

if TYPE_CHECKING:
    from opdock.graph.nodes.registry import OpSpec
    from opdock.graph.nodes.traits import Traits

_graphs: Final = itertools.count()


def as_text(name: str | bytes) -> str:
    """A name as text; TF takes names as bytes too."""
    return name.decode() if isinstance(name, bytes) else name


def is_slices(item: Any) -> bool:
    """Whether a value is a sparse update."""
    return hasattr(item, "values") and hasattr(item, "indices") and not isinstance(item, Tensor)


_converters: Final[list[Callable[[Any], Tensor]]] = []


def convert_by(function: Callable[[Any], Tensor]) -> None:
    """Says what makes tensors of values: it stands on graphs, so that they cannot import it."""
    _converters[:] = [function]


def as_operation(item: Any) -> Operation:
    """The operation behind a value; that of a new tensor, where the value is one of Python's."""
    if isinstance(item, Operation):
        return item
    if is_slices(item):
        item = item.values
    op = getattr(item, "op", None)
    if isinstance(op, Operation):
        return op
    return _converters[0](item).op


class NotInGraphError(KeyError):
    """A name is not in the graph; the nearest one is looked for when somebody reads the message.

    Programs ask for names to see whether they are there, and should not wait for more than that.
    """

    def __init__(self, text: str, name: str, known: Mapping[str, Any]) -> None:
        super().__init__(text)
        self._asked, self._known = name, known

    def __str__(self) -> str:
        return repr(f"{self.args[0]}{near(self._asked, self._known)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return KeyError, self.args


class GraphContents:
    """The part of `Graph` that finds things."""

    tensor_type: type[Tensor] = Tensor
    """What the results of its operations are."""
    _last_loss_reduction: str | None = None
    """How the last loss of `tf.losses` was made of those of its batch."""
    _count: list[int]

    def __init__(self) -> None:
        self._ops: list[Operation] = []
        self._nodes_by_name: dict[str, Operation] = {}
        self._kinds: set[OpSpec] = set()
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False
        self._producer = GRAPH_DEF_VERSION
        self._min_consumer = 0
        self._bad_consumers: set[int] = set()
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Any] = set()
        self._lock = threading.RLock()
        self._watchers: tuple[weakref.WeakMethod[Callable[[], None]], ...] = ()
        self._scoped_state: dict[Any, Any] = {}

    def _may_have(self, asked: Callable[[Traits], bool]) -> bool:
        """Whether an operation of such traits was ever made here: nearly always none, and then
        nobody need walk the graph to look for one."""
        return any(asked(spec.traits) for spec in list(self._kinds))

    @property
    def _last_id(self) -> int:
        """The number of the operation that was made last."""
        return self._count[0]

    @property
    def _graph_key(self) -> str:
        """A text of this graph alone; optimizers of libraries keep by it what is a graph's."""
        key: str = self._scoped_state.setdefault("graph_key", f"grap-key-{next(_graphs)}/")
        return key

    @property
    def _c_graph(self) -> GraphContents:
        """What TensorFlow's C interface would know the graph by."""
        return self

    @property
    def graph_def_versions(self) -> Any:
        """The VersionDef that `as_graph_def` writes."""
        from opdock.io import protos

        return protos.VersionDef(
            producer=self._producer,
            min_consumer=self._min_consumer,
            bad_consumers=sorted(self._bad_consumers),
        )

    def _create_op_from_tf_operation(self, c_op: Operation) -> Operation:
        """An operation that Keras had made by `create_c_op`, which is in the graph already."""
        return c_op

    def _get_control_flow_context(self) -> None:
        """None: loops and branches are functions here, with graphs of their own."""

    def _set_control_flow_context(self, ctx: None) -> None:
        """Takes back what `_get_control_flow_context` gave, as libraries do around a call.

        Raises:
            UnimplementedError: it is another context.
        """
        if ctx is not None:
            raise errors.UnimplementedError(
                None, None, f"Graphs have no control flow contexts, such as {ctx!r}: loops and "
                "branches are functions here",
            )  # fmt: skip

    def _check_not_finalized(self) -> None:
        if self._finalized:
            raise RuntimeError("Graph is finalized and cannot be modified.")

    # ------------------------------------------------------------ look-up
    def get_operations(self) -> list[Operation]:
        """All operations in the order in which they were made."""
        return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation called `name`.

        Raises:
            KeyError: there is none.
            TypeError: `name` is not a string.
        """
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        op: Operation = self.as_graph_element(name, allow_tensor=False)
        return op

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called `name` ("op:index"); raises as `get_operation_by_name` does."""
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        tensor: Tensor = self.as_graph_element(name, allow_operation=False)
        return tensor

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The Tensor or Operation that `obj` (itself, a name, or a variable) stands for.

        Raises:
            TypeError: `obj` cannot stand for one.
            ValueError: it belongs to another graph, or the name is malformed.
            KeyError: no such name.
        """
        kinds = " or ".join(
            k for k, ok in (("Tensor", allow_tensor), ("Operation", allow_operation)) if ok
        )
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, (str, bytes)):
            return self._element_by_name(as_text(obj), allow_tensor, allow_operation)
        if isinstance(obj, Tensor) and allow_tensor:
            if obj._op.graph is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj!r} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")

    def _element_by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" in name and allow_tensor:
            op_name, _, index = name.partition(":")
            if not index.isdigit():
                raise ValueError(
                    f"The name {name!r} looks a like a Tensor name, but is not a valid one. Tensor "
                    'names must be of the form "<op_name>:<output_index>".'
                )
            op = self._nodes_by_name.get(op_name)
            if op is None:
                raise NotInGraphError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, does not exist in the graph.",
                    op_name, self._nodes_by_name,
                )  # fmt: skip
            if int(index) >= len(op.outputs):
                raise KeyError(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, exists but only has {len(op.outputs)} outputs."
                )
            return op.outputs[int(index)]
        if ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not an Operation.")
        if not allow_operation:
            if name in self._nodes_by_name:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be "
                    'of the form "<op_name>:<output_index>".'
                )
            raise ValueError(
                f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. Tensor "
                'names must be of the form "<op_name>:<output_index>".'
            )
        found = self._nodes_by_name.get(name)
        if found is None:
            raise NotInGraphError(
                f"The name {name!r} refers to an Operation not in the graph.",
                name,
                self._nodes_by_name,
            )
        return found

    # ------------------------------------------------------------ collections
    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends `value` to the collection `name`."""
        self._check_not_finalized()
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends `value` to each collection, once even if a name repeats."""
        for name in (names,) if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of a collection; with `scope`, the items whose names match it at the start."""
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        pattern = re.compile(scope)
        return [i for i in items if hasattr(i, "name") and pattern.match(i.name)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself, made when missing."""
        return self._collections.setdefault(name, [])

    def _collection_size(self, name: Any) -> int:
        """How many items a collection has, which need not be there."""
        return len(self._collections.get(name, ()))

    def _collection_index(self, name: Any, item: Any) -> int:
        """The last place of an object in a collection; -1 if it has none.

        It is looked for from the end, where those are that were added last.
        """
        items = self._collections.get(name, ())
        for i in range(len(items) - 1, -1, -1):
            if items[i] is item:
                return i
        return -1

    def get_all_collection_keys(self) -> list[Any]:
        """The string names of the collections that users see."""
        return [k for k in self._collections if isinstance(k, str)]

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        self._check_not_finalized()
        self._collections.pop(name, None)

    # ------------------------------------------------------------ who depends on it
    def _watch(self, forget: Callable[[], None]) -> None:
        """Has a bound method called at each change of what is there, as long as its object lives.

        New nodes are no such change.
        """
        with self._lock:
            alive = [w for w in self._watchers if w() is not None]
            self._watchers = (*alive, weakref.WeakMethod(forget))

    def _tell(self) -> None:
        for watcher in self._watchers:
            forget = watcher()
            if forget is not None:
                forget()

    # ------------------------------------------------------------ feeding and fetching
    def prevent_feeding(self, tensor: Tensor) -> None:
        """Marks a tensor as not feedable."""
        self._unfeedable.add(tensor)
        self._tell()

    def is_feedable(self, tensor: Any) -> bool:
        """Whether `tensor` may be fed."""
        return tensor not in self._unfeedable

    def prevent_fetching(self, op: Any) -> None:
        """Marks an operation as not fetchable."""
        self._unfetchable.add(op)
        self._tell()

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether it may be fetched."""
        op = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return op not in self._unfetchable
