"""`tf.saved_model.load_v2`: a model as an object in the graph that is being built.

The model's graph is imported once, under a scope of its own. A call of a signature adds what the
results depend on once more, with other inputs; variables and tables are those of the import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.graph.control.function_op import copy_operations
from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import executing_eagerly, name_scope
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.graph.variables.variable_lists import variables_initializer
from opdock.io import protos
from opdock.io.files import as_path
from opdock.ops.control import group
from opdock.saved_model import constants, utils
from opdock.saved_model.loader import SavedModelLoader, get_asset_tensors
from opdock.saved_model.objects import load_objects, load_objects_around
from opdock.train.saver import import_meta_graph_with_return_elements
from opdock.util import nest

__all__ = ["load_partial", "load_v2"]

_KEPT = (
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES, GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
)  # fmt: skip


def load_v2(export_dir: Any, tags: Any = None) -> AutoTrackable:
    """Loads a SavedModel as an object: its signatures are functions, its variables are there.

    `tf.global_variables_initializer()` gives the variables the values of the model, and
    `tf.tables_initializer()` runs what the model does when it is loaded.

    A model that `tf.saved_model.save` wrote, TensorFlow 2's among them, becomes the object that was
    saved: its attributes are variables, functions, tables, and objects with attributes again.

    Args:
        export_dir: the model's directory.
        tags: a tag or all tags of the meta graph; may be left out if there is one meta graph.

    Returns:
        That object, which has `signatures`; of a model of a session, an object with `signatures`,
        by name functions from tensors to a dictionary of tensors; `variables`, those that are
        resources; `asset_paths`; `initializer`; `prune(feeds, fetches)`, a function from some
        tensors of the model to others, given by their names. Both have `tensorflow_version` and
        `tensorflow_git_version`.

    Raises:
        IOError: there is no model, or it cannot be parsed.
        ValueError: there are several meta graphs and no tags, or a signature depends on a
            placeholder that it does not take.
        RuntimeError: no meta graph has these tags.
        tf.errors.DataLossError: the objects of the model contradict each other.
        tf.errors.UnimplementedError: an object is of a kind that is not known here, or operations
            run as they are made and the model is of a session.
    """
    loader = SavedModelLoader(export_dir)
    root: Any
    meta = _meta_graph(loader, tags)
    if meta.HasField("object_graph_def"):
        root = load_objects(meta, as_path(export_dir))
        root.tensorflow_version = meta.meta_info_def.tensorflow_version
        root.tensorflow_git_version = meta.meta_info_def.tensorflow_git_version
        return root  # type: ignore[no-any-return]
    if executing_eagerly():
        raise errors.UnimplementedError(
            None, None,
            f"The SavedModel {as_path(export_dir)} is of a session: its operations are parts of one"
            " graph, and its variables may be references, which no operation has that runs by"
            " itself. Load it in a graph (`with tf.Graph().as_default():`), or save it anew with"
            " `tf.saved_model.save`.",
        )  # fmt: skip
    part = _Imported(meta, export_dir)
    root = AutoTrackable()
    root.variables = part.variables
    restore = part.restored(loader.variables_path)
    local = part.begun()
    root.initializer = group(restore, local) if restore is not None else local
    root.asset_paths = list(part.assets.values())
    root.signatures = {
        key: _Signature(part, key, signature)
        for key, signature in meta.signature_def.items()
        if key not in (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY)
    }
    root.prune = part.prune
    root.tensorflow_version = meta.meta_info_def.tensorflow_version
    root.tensorflow_git_version = meta.meta_info_def.tensorflow_git_version
    return root  # type: ignore[no-any-return]


def load_partial(
    export_dir: Any, filters: Mapping[str, Any], tags: Any = None, options: Any = None
) -> dict[str, Any]:
    """Loads a model of `tf.saved_model.save` around objects that there are already.

    Their variables get the model's values when they are initialized, and their attributes become
    what the model has, functions above all.

    Args:
        export_dir: the model's directory.
        filters: the ways to objects, such as "root.layer", and for each the object and what sets
            its attributes, `setter(object, name, value)`; None for an object that is made.
        tags: a tag or all tags of the meta graph; may be left out if there is one meta graph.
        options: a `LoadOptions`, of which none is about what is read here.

    Returns:
        The objects by the same ways.

    Raises:
        ValueError: a way leads to no object of the model; and what `load_v2` raises.
    """
    meta = _meta_graph(SavedModelLoader(export_dir), tags)
    return load_objects_around(meta, as_path(export_dir), filters)


def _meta_graph(loader: SavedModelLoader, tags: Any) -> Any:
    graphs = loader.saved_model.meta_graphs
    if tags is not None:
        found = loader.get_meta_graph_def_from_tags([tags] if isinstance(tags, str) else tags)
    elif len(graphs) != 1:
        sets = [list(m.meta_info_def.tags) for m in graphs]
        raise ValueError(
            "Importing a SavedModel with tf.saved_model.load requires a 'tags=' argument if there "
            f"is more than one MetaGraph. Got 'tags=None', but there are {len(graphs)} MetaGraphs "
            f"in the SavedModel with tag sets {sets}. Pass a 'tags=' argument to load this "
            "SavedModel."
        )
    else:
        found = graphs[0]
    return found


class _Imported:
    """The graph of a model, imported into the default graph.

    Attributes:
        graph: that graph.
        variables: of the model, as far as they are resources; global ones first.
        assets: the places of its files by the names of the tensors that are to have them.
    """

    def __init__(self, meta: Any, export_dir: Any) -> None:
        self.graph: Graph = get_default_graph()
        self._meta = meta
        self._scope = self.graph.unique_name("loaded", mark_as_used=False)
        alone = protos.MetaGraphDef()
        alone.CopyFrom(meta)
        for key in [k for k in alone.collection_def if k not in _KEPT]:
            del alone.collection_def[key]
        utils.rename_shared(alone, f"_{self._scope}")
        before = {id(op) for op in self.graph.get_operations()}
        had = {key: list(self.graph.get_collection(key)) for key in _KEPT}
        import_meta_graph_with_return_elements(alone, import_scope=self._scope)
        self._operations = [op for op in self.graph.get_operations() if id(op) not in before]
        new = {k: [v for v in self.graph.get_collection(k) if v not in had[k]] for k in _KEPT}
        self._globals = new[GraphKeys.GLOBAL_VARIABLES]
        self._locals = new[GraphKeys.LOCAL_VARIABLES]
        # Variables that are references are the model's own, as in TF.
        both = [*self._globals, *self._locals]
        self.variables = [v for v in both if isinstance(v, ResourceVariable)]
        self.assets = get_asset_tensors(export_dir, meta, self._scope)

    def element(self, name: str) -> Any:
        """A tensor or operation, by the name that it has in the model."""
        return self.graph.as_graph_element(f"{self._scope}/{name}")

    def tensors(self, info: Any) -> Any:
        """What a `TensorInfo` describes."""
        return utils.get_tensor_from_tensor_info(info, self.graph, self._scope)

    def needed(self, ends: Any, fed: Iterable[Tensor]) -> set[Operation]:
        """The operations on which ends depend, without what holds state or is fed."""
        given = {t.op for t in fed}
        stack = [getattr(end, "op", end) for end in nest.flatten(ends, expand_composites=True)]
        found: set[Operation] = set()
        while stack:
            op = stack.pop()
            if op in found or op in given or _holds(op):
                continue
            found.add(op)
            stack += [t.op for t in op.inputs] + op.control_inputs
        return found

    def again(self, ends: Any, values: Mapping[Tensor, Tensor]) -> Any:
        """What ends stand for where tensors have other values: a copy of what they depend on."""
        needed = self.needed(ends, values)
        held = {t: t for op in self._operations if _holds(op) for t in op.outputs}
        known = {**held, **values}
        with self.graph.as_default():
            made = copy_operations(self.graph, needed, known)
        return nest.map_structure(
            lambda e: known[e] if isinstance(e, Tensor) else made[e], ends, expand_composites=True
        )

    def prune(self, feeds: Any, fetches: Any) -> Callable[..., Any]:
        """A function from some tensors to others; see `load_v2`."""

        def element(thing: Any) -> Any:
            return self.element(thing) if isinstance(thing, str) else thing

        fed = [element(f) for f in nest.flatten(feeds)]
        ends = nest.map_structure(element, fetches)

        names = [f.op.name.removeprefix(f"{self._scope}/") for f in fed]

        def call(*args: Any, **kwargs: Any) -> Any:
            given = _by_name("The function", names, args, kwargs)
            return self.again(ends, _fitting(fed, given))

        return call

    def restored(self, prefix: str) -> Operation | None:
        """The operation that gives the global variables their values, which is made theirs."""
        saver = self._meta.saver_def
        if not saver.restore_op_name:
            return None
        place = self.element(saver.filename_tensor_name)
        op: Operation = self.again(
            self.element(saver.restore_op_name), {place: convert_to_tensor(prefix)}
        )
        for variable in self._globals:
            variable._initializer_op = op
        # Where there are no variables to hand it on, tables may still be restored.
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        return op

    def begun(self) -> Operation:
        """The operation that does what the model does when it is loaded."""
        values = {
            self.graph.get_tensor_by_name(name): convert_to_tensor(path)
            for name, path in self.assets.items()
        }
        found = self._init_op()
        if found is None:
            tables = self._meta.collection_def[GraphKeys.TABLE_INITIALIZERS].node_list.value
            ops = [self.again(self.element(name), values) for name in tables]
            op: Operation = group(variables_initializer(self._locals), *ops)
        else:
            op = self.again(found, values)
            for variable in self._locals:
                variable._initializer_op = op
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
        return op

    def _init_op(self) -> Any:
        """The model's own operation for that, or None."""
        signature = self._meta.signature_def
        if constants.INIT_OP_SIGNATURE_KEY in signature:
            outputs = signature[constants.INIT_OP_SIGNATURE_KEY].outputs
            return self.element(outputs[constants.INIT_OP_SIGNATURE_KEY].name)
        for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
            names = list(self._meta.collection_def[key].node_list.value)
            if len(names) > 1:
                raise RuntimeError(f"Expected exactly one SavedModel init op. Found: {names}")
            if names:
                return self.element(names[0])
        return None


def _holds(op: Operation) -> bool:
    """Whether an operation stands for a variable, a table or another state of the session."""
    return not op.inputs and any(
        t.dtype._is_ref_dtype or t.dtype is dtypes.resource for t in op.outputs
    )


class _Signature:
    """A function of a model.

    Attributes:
        inputs: the tensors of the import that a call replaces, in the order of their names.
        outputs: those that it computes.
        structured_outputs: the same, by name.
    """

    def __init__(self, part: _Imported, key: str, signature: Any) -> None:
        self._part, self._key = part, key
        self._names = sorted(signature.inputs)
        self.inputs: list[Tensor] = [part.tensors(signature.inputs[n]) for n in self._names]
        self.structured_outputs = {
            name: part.tensors(signature.outputs[name]) for name in sorted(signature.outputs)
        }
        self.outputs: Sequence[Tensor] = nest.flatten(
            self.structured_outputs, expand_composites=True
        )
        for op in part.needed(self.structured_outputs, self.inputs):
            if op.spec.traits.placeholder:
                raise ValueError(
                    "A SavedModel signature needs an input for each placeholder the signature's "
                    f"outputs use. An output for signature '{key}' depends on a placeholder which "
                    "is not an input (i.e. the placeholder is not fed a value).\n\n"
                    f"Unable to lift tensor: it depends on placeholder {op.name}."
                )

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The results by name.

        Args:
            *args: the input, if there is one only.
            **kwargs: the inputs by name.

        Raises:
            TypeError: an input is missing, or there is none of a name.
            ValueError: a tensor has another type.
        """
        if args and (len(self._names) != 1 or len(args) > 1):
            raise TypeError(f"Signature '{self._key}' takes its inputs by name: {self._names}")
        given = _by_name(f"Signature '{self._key}'", self._names, args, kwargs)
        with self._part.graph.as_default(), name_scope(self._key):
            found: dict[str, Any] = self._part.again(
                self.structured_outputs, _fitting(self.inputs, given)
            )
            return found


def _by_name(what: str, names: list[str], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Arguments in the order of their names; TypeError where one is missing or too many."""
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if sorted(given) != sorted(names) or len(given) != len(args) + len(kwargs):
        raise TypeError(f"{what} takes {names}, got {[*names[: len(args)], *sorted(kwargs)]}")
    return [given[name] for name in names]


def _fitting(fed: Sequence[Tensor], args: Sequence[Any]) -> dict[Tensor, Tensor]:
    """Arguments as the tensors that stand in for others; their shapes may be others, as in TF."""
    pairs = zip(fed, args, strict=True)
    return {t: convert_to_tensor(argument, t.dtype.base_dtype) for t, argument in pairs}
