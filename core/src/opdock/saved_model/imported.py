"""`tf.saved_model.load_v2`: a model as an object in the program.

The graph of a session's model stays a graph of its own. What is called are functions of parts of
it; its variables are the program's, and what else holds state is known by its name.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from opdock import dtypes
from opdock.graph.nodes.collections import GraphKeys, add_to_collection
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import init_scope
from opdock.graph.nodes.typespec import TensorSpec
from opdock.graph.variables.resource_variable import ResourceVariable, UninitializedVariable
from opdock.graph.variables.trackable_resources import CapturableResource, TrackableAsset
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.graph.variables.variable import Variable
from opdock.io import protos
from opdock.io.files import as_path
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.composed.tracing import UnliftableError, spec_of
from opdock.ops.identity import placeholder
from opdock.saved_model import constants, utils
from opdock.saved_model.loader import SavedModelLoader, get_asset_tensors, get_init_op
from opdock.saved_model.objects import load_objects, load_objects_around
from opdock.saved_model.parts import part
from opdock.saved_model.signature_functions import SignatureMap
from opdock.train.loops.scaffold import Scaffold
from opdock.train.saver import import_meta_graph_with_return_elements
from opdock.util import nest

__all__ = ["load_partial", "load_v2"]

_VARIABLES: Final = (
    GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES, GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
)  # fmt: skip
_KEPT: Final = (
    *_VARIABLES,
    GraphKeys.TABLE_INITIALIZERS,
    constants.MAIN_OP_KEY,
    constants.LEGACY_INIT_OP_KEY,
)
_OF_SESSIONS: Final = (constants.INIT_OP_SIGNATURE_KEY, constants.TRAIN_OP_SIGNATURE_KEY)
_numbers: Final[Iterator[int]] = itertools.count()


def load_v2(export_dir: Any, tags: Any = None) -> AutoTrackable:
    """Loads a SavedModel as an object: its signatures are functions, its variables are there.

    Where operations run as they are made, the variables have their values then. In a graph
    `tf.global_variables_initializer()` gives them these, and `tf.tables_initializer()` runs what
    the model does when it is loaded.

    A model that `tf.saved_model.save` wrote, TensorFlow 2's among them, becomes the object that was
    saved: its attributes are variables, functions, tables, and objects with attributes again.

    Args:
        export_dir: the model's directory.
        tags: a tag or all tags of the meta graph; may be left out if there is one meta graph.

    Returns:
        That object, which has `signatures`; of a model of a session, an object with `signatures`,
        by name functions from tensors to a dictionary of tensors; `variables`, those that are
        resources; `asset_paths`; `initializer`, what it does when it is loaded; `graph`; and
        `prune(feeds, fetches)`, a function from some tensors of that graph to others, which may be
        given by their names. Both have `tensorflow_version` and `tensorflow_git_version`.

    Raises:
        IOError: there is no model, or it cannot be parsed.
        ValueError: there are several meta graphs and no tags, or a signature depends on a
            placeholder that it does not take.
        RuntimeError: no meta graph has these tags.
        tf.errors.DataLossError: the objects of the model contradict each other.
        tf.errors.UnimplementedError: an object is of a kind that is not known here.
    """
    loader = SavedModelLoader(export_dir)
    meta = _meta_graph(loader, tags)
    with init_scope():
        if meta.HasField("object_graph_def"):
            root = load_objects(meta, as_path(export_dir))
        else:
            root = _Imported(meta).root(loader.variables_path, get_asset_tensors(export_dir, meta))
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
    if tags is not None and len(graphs) == 1 and graphs[0].HasField("object_graph_def"):
        given = {tags} if isinstance(tags, str) else set(tags)
        if given != set(graphs[0].meta_info_def.tags):
            raise ValueError(
                f"The SavedModel has one MetaGraph with tags {list(graphs[0].meta_info_def.tags)}, "
                f"but got an incompatible argument tags={tags} to tf.saved_model.load. You may "
                "omit it, pass 'None', or pass matching tags."
            )
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
    """The graph of a model of a session.

    Args:
        meta: the `MetaGraphDef`.

    Attributes:
        graph: its operations, by the names that they have in the model.
        variables: those of the program that stand for the model's, as far as they are resources.
    """

    def __init__(self, meta: Any) -> None:
        self._meta = protos.MetaGraphDef()
        self._meta.CopyFrom(meta)
        for key in [k for k in meta.collection_def if k not in _KEPT]:
            del self._meta.collection_def[key]
        utils.rename_shared(self._meta, f"_load_{next(_numbers)}")
        self.graph = Graph()
        with self.graph.as_default():
            self._saver, _ = import_meta_graph_with_return_elements(self._meta)
            begin = get_init_op(self._meta) or Scaffold.default_local_init_op()
            self._begin = getattr(begin, "op", begin)
        self._program = get_default_graph()
        self._stands: dict[Tensor, ResourceVariable] = {}
        self._globals = self._lifted(GraphKeys.GLOBAL_VARIABLES)
        self._locals = self._lifted(GraphKeys.LOCAL_VARIABLES)
        self.variables = list(self._stands.values())

    def _lifted(self, key: str) -> list[ResourceVariable]:
        """Variables of the program for those of a collection; references stay the model's own."""
        found = [v for v in self.graph.get_collection(key) if isinstance(v, ResourceVariable)]
        for variable in found:
            if variable.handle not in self._stands:
                # By what they are: with TF 2's behaviour `==` compares values.
                keys = [
                    k for k in _VARIABLES
                    if any(other is variable for other in self.graph.get_collection(k))
                ]  # fmt: skip
                self._stands[variable.handle] = UninitializedVariable(variable, keys)
        return [self._stands[v.handle] for v in found]

    def root(self, prefix: str, assets: Mapping[str, bytes]) -> Any:
        """The object that the program gets, whose variables have their values or will get them.

        Args:
            prefix: of the checkpoint.
            assets: the places of files, by the tensors that are to have them.
        """
        if self._saver is not None:
            told = self._saver.saver_def
            restore = self.prune(told.filename_tensor_name, _operation(told.restore_op_name))
            self._begins(restore(prefix), self._globals)
        paths = [TrackableAsset(path) for path in assets.values()]
        initializer = _Initializer(self.prune(list(assets), self._begin), paths)
        self._begins(initializer._initialize(), self._locals)
        root: Any = AutoTrackable()
        root.initializer, root.asset_paths = initializer, paths
        root.signatures = SignatureMap({
            key: self._signature(key, signature)
            for key, signature in self._meta.signature_def.items()
            if key not in _OF_SESSIONS
        })  # fmt: skip
        root.variables = self.variables
        root.graph, root.prune = self.graph, self.prune
        return root

    def _begins(self, op: Any, variables: Sequence[Variable]) -> None:
        """Has a graph's initializers run what has run already where there is none."""
        if self._program.eager:
            return
        for variable in variables:
            variable._initializer_op = op
        # Where there are no variables to hand it on, tables and references still wait for it.
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)

    # ------------------------------------------------------------ functions
    def prune(self, feeds: Any, fetches: Any) -> ConcreteFunction:
        """The function from some tensors to others, which may be nested and given by name.

        It takes its arguments in order or by the names of the operations.

        Raises:
            ValueError: the results depend on a placeholder that is no argument.
        """
        fed = [self._element(f) for f in nest.flatten(feeds)]
        ends = nest.map_structure(self._element, fetches, expand_composites=True)
        signature: Any = tuple(_spec(t.op.name, t) for t in fed), {}
        function = self._function("pruned", fed, ends, signature)
        function._arg_keywords = [t.op.name for t in fed]
        function._num_positional_args = len(fed)
        return function

    def _element(self, thing: Any) -> Any:
        return self.graph.as_graph_element(thing) if isinstance(thing, str) else thing

    def _signature(self, key: str, signature: Any) -> ConcreteFunction:
        given = {n: self._tensors(signature.inputs[n]) for n in sorted(signature.inputs)}
        found = {n: self._tensors(signature.outputs[n]) for n in sorted(signature.outputs)}
        try:
            specs = {name: _spec(name, tensor) for name, tensor in given.items()}
            name = f"signature_wrapper_{key}"
            function = self._function(name, list(given.values()), found, ((), specs))
        except UnliftableError as e:
            raise UnliftableError(
                "A SavedModel signature needs an input for each placeholder the signature's "
                f"outputs use. An output for signature '{key}' depends on a placeholder which is "
                f"not an input (i.e. the placeholder is not fed a value).\n\n{e}"
            ) from e
        function._arg_keywords = list(given)
        function._num_positional_args = int(len(given) == 1)
        return function

    def _tensors(self, info: Any) -> Any:
        return utils.get_tensor_from_tensor_info(info, self.graph)

    def _function(
        self, name: str, given: Sequence[Any], ends: Any, signature: Any
    ) -> ConcreteFunction:
        """A function from tensors to others."""
        body = part(self.graph, self._program, self._stands, name, given, ends)
        results = nest.map_structure(
            lambda e: None if isinstance(e, Operation) else spec_of(e), ends
        )
        return ConcreteFunction(
            body.func_name, lambda: body, lambda: [outer for outer, _ in body.captures],
            signature, results,
        )  # fmt: skip


class _Initializer(CapturableResource):
    """What a model does when it is loaded. It does so as well when it is saved anew and loaded.

    Args:
        function: does it, given the places of the model's files.
        assets: those.
    """

    def __init__(self, function: Callable[..., Any], assets: Sequence[TrackableAsset]) -> None:
        self._function, self._files = function, list(assets)

    def _create_resource(self) -> Tensor:
        unused: Tensor = placeholder(dtypes.resource, (), name="unused_resource")
        return unused

    def _initialize(self) -> Any:
        return self._function(*[file.asset_path for file in self._files])


def _spec(name: str, tensor: Any) -> Any:
    found = spec_of(tensor)
    named = isinstance(found, TensorSpec)
    return TensorSpec(found.shape, found.dtype, name) if named else found


def _operation(name: str) -> str:
    """The name of an operation, where a saver may name its tensor."""
    return name.partition(":")[0]
