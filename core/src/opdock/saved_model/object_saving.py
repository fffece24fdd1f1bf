"""`tf.saved_model.save`: objects with their variables, functions, tables and files as a SavedModel.

The functions are traced in the program's graph; the model's own graph, which a session can load,
holds copies of the variables and resources, and calls the signatures.
"""

from __future__ import annotations

import os
from typing import Any

from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.typespec import TensorSpec
from opdock.graph.variables.resource_variable import ResourceVariable
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.trackable_resources import TrackableAsset, owns_resource
from opdock.io import protos
from opdock.io.files import as_path, write_file
from opdock.ops.composed.concrete_function import ConcreteFunction
from opdock.ops.composed.function import Function
from opdock.saved_model import constants, revived, utils
from opdock.saved_model.builder import copy_assets_to_destination_dir
from opdock.saved_model.exported import ExportedGraph
from opdock.saved_model.file import to_bytes
from opdock.saved_model.nested_structure_coder import StructureCoder
from opdock.saved_model.object_view import CapturedConstant, ModelView
from opdock.saved_model.restored_function import RestoredFunction
from opdock.saved_model.signature_functions import (
    SignatureMap,
    canonical_signatures,
    function_to_export,
)
from opdock.train.tracking.object_graph import ObjectGraphView
from opdock.train.tracking.util import TrackableSaver
from opdock.util.identities import ObjectIdentityDictionary
from opdock.util.nest_paths import map_structure_with_paths

__all__ = ["save", "save_and_return_nodes"]


def save(obj: Any, export_dir: Any, signatures: Any = None) -> None:
    """Writes an object and all behind it as a SavedModel.

    Variables, `tf.function`s, tables and files are found through attributes. The variables have the
    values that they have in the default session. `tf.saved_model.load_v2` gives the object back,
    and a session loads its signatures.

    Args:
        obj: a trackable object, such as a `tf.Module` or a `tf.train.Checkpoint`.
        export_dir: the model's directory.
        signatures: a `tf.function` with an input signature, a concrete function, or several by
            name; by default the only one of the object that can be one.

    Raises:
        AssertionError: a function is being built, or one uses a resource that no attribute holds.
        KeyError: a function uses a variable that no attribute holds.
        ValueError: the object is not trackable, or something of it cannot be saved.
        tf.errors.FailedPreconditionError: there is no session, or a variable has no value in it.
    """
    save_and_return_nodes(obj, export_dir, signatures)


def save_and_return_nodes(
    obj: Any, export_dir: Any, signatures: Any = None, options: Any = None
) -> tuple[list[Any], ObjectIdentityDictionary]:
    """As `save`, for who writes more of the objects beside the model, as Keras does.

    Args:
        obj: a trackable object.
        export_dir: the model's directory.
        signatures: as for `save`.
        options: a `SaveOptions`, of which none is about what is written here.

    Returns:
        The objects as the model numbers them, and the way from the root to each.
    """
    if get_default_graph().building_function:
        raise AssertionError(
            "tf.saved_model.save is not supported inside a traced @tf.function. Move the call to "
            "the outer eagerly-executed context."
        )
    if not isinstance(obj, Trackable):
        raise ValueError(f"Expected a Trackable object for export, got {obj}.")
    view = ModelView(obj)
    if signatures is None:
        signatures = function_to_export(view.functions(obj))
    offered = canonical_signatures(signatures)
    view.add_signatures(SignatureMap(offered))
    objects = view.freeze()
    graph = ExportedGraph(view, objects)
    meta = graph.meta_graph(offered)
    directory = as_path(export_dir)
    utils.get_or_create_variables_dir(directory)
    TrackableSaver(ObjectGraphView(obj), lambda: objects).save(utils.get_variables_path(directory))
    copy_assets_to_destination_dir(graph.files, directory)
    _describe(view, graph, meta.object_graph_def, objects)
    model = protos.SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
    model.meta_graphs.add().CopyFrom(meta)
    write_file(os.path.join(directory, constants.SAVED_MODEL_FILENAME_PB), to_bytes(model))
    return view.nodes, objects.paths()


# ---------------------------------------------------------------- the objects as a protobuf
def _describe(view: ModelView, graph: ExportedGraph, proto: Any, objects: Any) -> None:
    """Fills a `SavedObjectGraph`."""
    coder = StructureCoder()
    for function in view.concrete_functions():
        _describe_concrete(function, graph, coder, proto.concrete_functions[function.name])
    for number, thing in enumerate(view.nodes):
        node = proto.nodes.add()
        _describe_node(thing, view, graph, node)
        if not isinstance(thing, Trackable) or isinstance(thing, ConcreteFunction):
            continue
        if not isinstance(thing, RestoredFunction):
            for name, child in {**view.children(thing), **view.functions(thing)}.items():
                node.children.add(node_id=view.number(child), local_name=name)
            for name, variable, slot in objects.slots_of(number):
                node.slot_variables.add(
                    slot_name=name, original_variable_node_id=variable, slot_variable_node_id=slot
                )


def _describe_concrete(
    function: ConcreteFunction, graph: ExportedGraph, coder: StructureCoder, proto: Any
) -> None:
    proto.bound_inputs.extend(graph.number_of(function, t) for t in function.captured_inputs)
    proto.canonicalized_input_signature.CopyFrom(
        coder.encode_structure(function.structured_input_signature)
    )
    outputs = map_structure_with_paths(_named_by_place, function.structured_outputs)
    proto.output_signature.CopyFrom(coder.encode_structure(outputs))


def _named_by_place(path: str, spec: Any) -> Any:
    """A spec of an output with the name that TensorFlow gives it: where it is among all."""
    if type(spec) is not TensorSpec:
        return spec
    return TensorSpec(spec.shape, spec.dtype, path)


def _describe_node(thing: Any, view: ModelView, graph: ExportedGraph, node: Any) -> None:
    if isinstance(thing, Function):
        _describe_function(thing, node.function)
        node.function.concrete_functions.extend(f.name for f in view.traced(thing))
    elif isinstance(thing, ConcreteFunction):
        node.bare_concrete_function.concrete_function_name = thing.name
        node.bare_concrete_function.allowed_positional_arguments = thing._num_positional_args
        node.bare_concrete_function.argument_keywords.extend(thing._arg_keywords or ())
    elif isinstance(thing, CapturedConstant):
        node.constant.operation = graph.constants[thing.tensor].op.name
    elif isinstance(thing, ResourceVariable):
        _describe_variable(thing, node.variable)
    elif isinstance(thing, TrackableAsset):
        node.asset.asset_file_def_index = graph.asset_index(thing)
        node.asset.SetInParent()
    elif owns_resource(thing):
        node.resource.device = thing._resource_device
        node.resource.SetInParent()
    elif (registered := revived.serialize(thing)) is not None:
        node.user_object.CopyFrom(registered)
    else:
        node.user_object.identifier = thing._object_identifier
        node.user_object.version.producer = node.user_object.version.min_consumer = 1
        node.user_object.metadata = thing._tracking_metadata


def _describe_function(function: Any, proto: Any) -> None:
    coder = StructureCoder()
    spec = function.function_spec
    if spec.is_method and not spec.fullargspec.args:
        raise NotImplementedError(
            "Missing support to serialize a method function without a named 'self' argument."
        )
    described = proto.function_spec
    described.fullargspec.CopyFrom(coder.encode_structure(spec.fullargspec))
    described.is_method = spec.is_method
    described.input_signature.CopyFrom(coder.encode_structure(_plain(spec.input_signature)))


def _plain(signature: Any) -> Any:
    """An input signature of specs alone: placeholders may stand there too."""
    if signature is None:
        return None
    return tuple(TensorSpec.from_tensor(s) if isinstance(s, Tensor) else s for s in signature)


def _describe_variable(variable: ResourceVariable, proto: Any) -> None:
    proto.SetInParent()
    proto.name = variable.op.name
    proto.trainable = variable.trainable
    proto.dtype = variable.dtype.base_dtype.as_datatype_enum
    proto.synchronization = variable.synchronization.value
    proto.aggregation = variable.aggregation.value
    proto.shape.CopyFrom(variable.shape.as_proto())
