"""The graph of a model of objects: copies of variables and resources, and calls of signatures."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from opdock import dtypes
from opdock.graph.control.func_graph import FuncGraph
from opdock.graph.control.function_op import FunctionSpec
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.graph import Graph
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.scopes import control_dependencies, device
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.trackable_resources import TrackableAsset, owns_resource
from opdock.io import protos
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.control import no_op
from opdock.ops.identity import placeholder
from opdock.ops.registry import get
from opdock.saved_model import constants, tag_constants
from opdock.saved_model import signature_constants as names
from opdock.saved_model.builder import get_asset_filename_to_add
from opdock.saved_model.object_view import ModelView
from opdock.saved_model.signature_def_utils import build_signature_def, op_signature_def
from opdock.saved_model.utils import build_tensor_info
from opdock.train.saveable import OBJECT_GRAPH_PROTO_KEY, SaveableObject, saveables_for
from opdock.train.saver import Saver
from opdock.train.tracking.base import NoRestoreSaveable
from opdock.train.tracking.object_graph import ObjectGraph
from opdock.util import nest

__all__ = ["ExportedGraph"]


class ExportedGraph:
    """The graph of a model.

    Args:
        view: the objects, frozen.
        objects: those that are no functions.

    Attributes:
        constants: constants of the program -> their copies.
        files: names in the model -> the files to copy.

    Raises:
        ValueError: a function uses a tensor that is no constant.
    """

    def __init__(self, view: ModelView, objects: ObjectGraph) -> None:
        self._graph = Graph()
        self._view, self._objects = view, objects
        # Tensors of the program that functions may take from outside -> copies, and numbers.
        self._stands: dict[Tensor, Any] = {}
        self._numbers: dict[Tensor, int] = {}
        self._saveables: list[SaveableObject] = []
        self.constants: dict[Tensor, Tensor] = {}
        self.files: dict[str, str] = {}
        self._assets: list[tuple[TrackableAsset, Any]] = []
        self._asset_starts: dict[Tensor, Operation] = {}
        with self._graph.as_default():
            for number, thing in enumerate(list(view.nodes)):
                self._copy(thing, number)
            for function in view.concrete_functions():
                self._copy_constants(function)

    # ------------------------------------------------------------ what functions take from outside
    def _copy(self, thing: Any, number: int) -> None:
        if isinstance(thing, ResourceVariable):
            found = ResourceVariable(
                placeholder(thing.dtype, thing.shape, name="initial_value"),
                trainable=thing.trainable, collections=[], dtype=thing.dtype,
                name=thing.op.name, shape=thing.shape,
            )  # fmt: skip
            self._stand(thing.handle, found.handle, number)
            self._save(thing, found)
        elif isinstance(thing, TrackableAsset):
            self._copy_asset(thing, number)
        elif owns_resource(thing):
            twin = copy.copy(thing)
            with device(thing._resource_device):
                twin._resource_handle = twin._create_resource()
            self._stand(thing.resource_handle, twin._resource_handle, number)
            self._save(thing, twin)

    def _stand(self, tensor: Tensor, stand_in: Any, number: int) -> None:
        self._stands[tensor], self._numbers[tensor] = stand_in, number

    def _save(self, thing: Any, twin: Any) -> None:
        """Has the copy of an object saved as the object itself is in the checkpoint."""
        for attribute, made in twin._gather_saveables_for_checkpoint().items():
            key = self._objects.key(thing, attribute)
            found = made(name=key) if callable(made) and made is not twin else made
            if isinstance(found, SaveableObject):
                self._saveables.append(found)
            else:
                self._saveables += saveables_for({key: found})

    def _copy_asset(self, asset: TrackableAsset, number: int) -> None:
        path = constant_value(asset.asset_path)
        source = bytes(path.item()).decode() if path is not None else ""
        name = get_asset_filename_to_add(source, self.files)
        self.files[name] = source
        start = placeholder(dtypes.string, (), name="asset_path_initializer")
        variable = ResourceVariable(start, collections=[], trainable=False)
        proto = protos.AssetFileDef(filename=name)
        proto.tensor_info.name = start.name
        self._assets.append((asset, proto))
        self._asset_starts[asset.asset_path] = variable.initializer
        self._stand(asset.asset_path, variable, number)

    def asset_index(self, asset: TrackableAsset) -> int:
        """The number of a file in the model."""
        return [known for known, _ in self._assets].index(asset)

    def _copy_constants(self, function: ConcreteFunction) -> None:
        for tensor in function.captured_inputs:
            kind = tensor.dtype.base_dtype
            if tensor in self._stands or kind in (dtypes.resource, dtypes.variant):
                continue
            value = constant_value(tensor)
            if value is None:
                raise ValueError(
                    f"Attempted to save a function {function.name} which references a symbolic "
                    f"Tensor {tensor} that is not a simple constant. This is not supported."
                )
            self.constants[tensor] = constant(value, kind)
            self._stand(tensor, self.constants[tensor], self._view.add_constant(tensor))

    def number_of(self, function: ConcreteFunction, tensor: Tensor) -> int:
        """The number of the object behind what a function takes from outside.

        Raises:
            KeyError: it is not behind the root.
        """
        if tensor not in self._numbers:
            raise KeyError(
                f"Failed to add concrete function {function.name} to object based saved model as "
                f"it captures tensor {tensor} which is unsupported or not reachable from root. One "
                "reason could be that a stateful object or a variable that the function depends "
                "on is not assigned to an attribute of the serialized trackable object."
            )
        return self._numbers[tensor]

    # ------------------------------------------------------------ calls
    def _call(self, function: ConcreteFunction, arguments: Sequence[Tensor]) -> Any:
        """Adds a call; returns the results, or the operation where there are none."""
        body = function.graph
        given = list(arguments)
        for tensor, inner in zip(
            function.captured_inputs, body.inputs[len(arguments) :], strict=True
        ):
            if tensor not in self._stands:
                raise AssertionError(
                    f"Tried to export a function which references untracked object {inner}."
                    "TensorFlow objects (e.g. tf.Variable) captured by functions must be tracked "
                    "by assigning them to an attribute of a tracked object or assigned to an "
                    "attribute of the main object directly."
                )
            stand_in = self._stands[tensor]
            is_asset = isinstance(stand_in, ResourceVariable)
            given.append(stand_in.read_value() if is_asset else stand_in)
        kind = get("StatefulPartitionedCall" if body.stateful else "PartitionedCall")
        return kind(given, Tout=[t.dtype.base_dtype for t in body.outputs], f=body)

    def _started(self) -> Operation:
        """The operation that fills the resources when the model is loaded."""
        starts = list(self._asset_starts.values())
        for thing in self._view.nodes:
            if owns_resource(thing):
                (function,) = self._view.traced(self._view.functions(thing)["_initialize"])
                with control_dependencies(list(self._asset_starts.values())):
                    made = self._call(function, ())
                starts.append(made[0].op if isinstance(made, (list, tuple)) else made)
        with control_dependencies(starts):
            return no_op()

    def _signature(self, key: str, function: ConcreteFunction) -> Any:
        inputs: dict[str, Tensor] = {}
        keywords = function._arg_keywords or []
        for name, inner in zip(keywords, function.inputs, strict=False):
            inputs[name] = placeholder(inner.dtype, inner.shape, name=f"{key}_{name}")
        results = self._call(function, list(inputs.values()))
        flat = results if isinstance(results, (list, tuple)) else [results]
        if not function.outputs:
            flat = []  # A call without results is its operation.
        for outer, inner in zip(flat, function.outputs, strict=True):
            outer.set_shape(inner.shape)
        outputs = nest.pack_sequence_as(function.structured_outputs, flat, expand_composites=True)
        return build_signature_def(
            _described(inputs), _described(outputs), names.PREDICT_METHOD_NAME
        )

    # ------------------------------------------------------------ all of it
    def meta_graph(self, signatures: Mapping[str, ConcreteFunction]) -> Any:
        """The `MetaGraphDef`, with the signatures.

        Raises:
            AssertionError: a function uses a resource that is not behind the root.
        """
        with self._graph.as_default():
            start = self._started()
            found = {key: self._signature(key, signatures[key]) for key in sorted(signatures)}
            for function in self._view.concrete_functions():
                self._graph._functions[function.name] = FunctionSpec(_named(function))
            described = constant("", dtypes.string)
            self._saveables.append(NoRestoreSaveable(described, OBJECT_GRAPH_PROTO_KEY))
            saver = Saver(self._saveables, max_to_keep=0)
            meta: Any = saver.export_meta_graph(collection_list=[], strip_default_attrs=True)
        meta.meta_info_def.tags.append(tag_constants.SERVING)
        meta.collection_def[constants.MAIN_OP_KEY].node_list.value.append(start.name)
        meta.signature_def[constants.INIT_OP_SIGNATURE_KEY].CopyFrom(
            op_signature_def(start, constants.INIT_OP_SIGNATURE_KEY)
        )
        for key, signature in found.items():
            meta.signature_def[key].CopyFrom(signature)
        meta.asset_file_def.extend(proto for _, proto in self._assets)
        return meta


def _named(function: ConcreteFunction) -> FuncGraph:
    body = function.graph
    body.func_name = function.name
    return body


def _described(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: build_tensor_info(tensor) for name, tensor in tensors.items()}
