"""`tf.saved_model.builder`: writes SavedModels."""

from __future__ import annotations

import filecmp
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage

from opdock import dtypes
from opdock.graph.nodes.collections import add_to_collection, get_collection
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.io import filesystems, protos
from opdock.io.files import as_path, atomic_write, make_directories, write_file
from opdock.saved_model import constants, utils
from opdock.saved_model.file import to_bytes, to_text
from opdock.saved_model.signature_def_utils import op_signature_def
from opdock.train.saveable import all_saveable_objects
from opdock.train.saver import Saver

__all__ = ["Builder", "SavedModelBuilder"]

_log = logging.getLogger("tensorflow")


class _Builder:
    """What both builders share: the directory, the message, the variables and the assets."""

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = as_path(export_dir)
        self._saved_model = protos.SavedModel(
            saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION
        )
        # The first meta graph comes with the variables, all others without.
        self._has_saved_variables = False
        where = filesystems.of(self._export_dir)
        if where.exists(self._export_dir) and where.listdir(self._export_dir):
            raise AssertionError(
                "Export directory already exists, and isn't empty. Please choose a different export"
                " directory, or delete all the contents of the specified directory:"
                f" {self._export_dir}"
            )
        make_directories(self._export_dir)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the `SavedModel` message, after which the model can be loaded.

        Args:
            as_text: write text instead of binary.

        Returns:
            The path of the file.
        """
        make_directories(self._export_dir)
        name = (
            constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        )
        path = os.path.join(self._export_dir, name)
        data = to_text(self._saved_model) if as_text else to_bytes(self._saved_model)
        write_file(path, data)
        _log.info("SavedModel written to: %s", path)
        return path.encode()

    # ------------------------------------------------------------ parts
    def _check_saved(self, wanted: bool) -> None:
        if wanted and not self._has_saved_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke"
                " `add_meta_graph_and_variables()` first."
            )
        if self._has_saved_variables and not wanted:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke"
                " `add_meta_graph()` instead."
            )

    def _save_variables(self, sess: Any, saver: Saver | None) -> Saver:
        utils.get_or_create_variables_dir(self._export_dir)
        saver = _saver(saver)
        # No state file: the directory is to be moved.
        saver.save(
            sess, utils.get_variables_path(self._export_dir), write_meta_graph=False,
            write_state=False,
        )  # fmt: skip
        return saver

    def _add(self, meta: Any, tags: Iterable[str], signatures: Mapping[str, Any]) -> None:
        meta.meta_info_def.tags.extend(tags)
        for name, signature in signatures.items():
            meta.signature_def[name].CopyFrom(signature)
        self._saved_model.meta_graphs.add().CopyFrom(meta)

    def _add_assets(
        self, tensors: Iterable[Any] | None, note: Callable[[str, Tensor], None]
    ) -> None:
        """Copies the files that the tensors name, and notes each under its name in the model."""
        files: dict[str, str] = {}
        if tensors is None:
            _log.info("No assets to save.")
        for tensor in tensors or ():
            source = _asset_path(tensor)
            name = get_asset_filename_to_add(source, files)
            note(name, tensor)
            files[name] = source
        if not files:
            _log.info("No assets to write.")
            return
        copy_assets_to_destination_dir(files, self._export_dir)


class _SavedModelBuilder(_Builder):
    """A builder that names initialization and training ops in signatures, as estimators want it.

    Args:
        export_dir: the directory; it is made if it does not exist.

    Raises:
        AssertionError: the directory holds something.
    """

    def add_meta_graph(
        self, tags: Iterable[str], signature_def_map: Mapping[str, Any] | None = None,
        assets_list: Iterable[Any] | None = None, clear_devices: bool = False,
        init_op: Any = None, train_op: Any = None, saver: Saver | None = None,
    ) -> None:  # fmt: skip
        """Adds the default graph, for variables that were saved with another one.

        Args:
            tags: by which it is found.
            signature_def_map: `SignatureDef`s by name.
            assets_list: constant tensors that name files to save with the model.
            clear_devices: take off the device of every node.
            init_op: op to run when the model is loaded.
            train_op: op that trains, for whoever loads the model.
            saver: what saves the variables; by default all of them, sharded.

        Raises:
            AssertionError: no variables were saved yet, or a signature is incomplete.
            KeyError: a signature has a reserved name.
        """
        self._check_saved(True)
        signatures = _with_ops(signature_def_map, init_op, train_op)
        meta = _saver(saver).export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=True
        )
        self._add_assets(assets_list, _asset_into(meta))
        self._add(meta, tags, signatures)

    def add_meta_graph_and_variables(
        self, sess: Any, tags: Iterable[str], signature_def_map: Mapping[str, Any] | None = None,
        assets_list: Iterable[Any] | None = None, clear_devices: bool = False,
        init_op: Any = None, train_op: Any = None, strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:  # fmt: skip
        """Adds the default graph, and saves a session's variables.

        The arguments are those of `add_meta_graph`, and:

        Args:
            sess: the session that holds the variables.
            strip_default_attrs: leave out attributes that have their default values.

        Raises:
            AssertionError: variables were saved before, or a signature is incomplete.
            KeyError: a signature has a reserved name.
        """
        self._check_saved(False)
        signatures = _with_ops(signature_def_map, init_op, train_op)
        saver = self._save_variables(sess, saver)
        meta = saver.export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        self._add_assets(assets_list, _asset_into(meta))
        self._add(meta, tags, signatures)
        self._has_saved_variables = True


class SavedModelBuilder(_Builder):
    """Writes a SavedModel: one or more graphs with tags, and the variables and assets they share.

    Args:
        export_dir: the directory; it is made if it does not exist.

    Raises:
        AssertionError: the directory holds something.
    """

    def add_meta_graph(
        self, tags: Iterable[str], signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None, legacy_init_op: Any = None,
        clear_devices: bool = False, main_op: Any = None, strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:  # fmt: skip
        """Adds the default graph, for variables that were saved with another one.

        Args:
            tags: by which it is found.
            signature_def_map: `SignatureDef`s by name.
            assets_collection: constant tensors that name files to save with the model.
            legacy_init_op: old name of `main_op`.
            clear_devices: take off the device of every node.
            main_op: op to run when the model is loaded.
            strip_default_attrs: leave out attributes that have their default values.
            saver: what saves the variables; by default all of them, sharded.

        Raises:
            AssertionError: no variables were saved yet, or a signature is incomplete.
            KeyError: a signature has a reserved name.
            TypeError: `main_op` is no operation, or an asset no constant string.
            ValueError: the graph has a main op already.
        """
        self._check_saved(True)
        signatures = _with_ops(signature_def_map, None, None)
        self._collect(assets_collection, legacy_init_op if main_op is None else main_op)
        meta = _saver(saver).export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        self._add(meta, tags, signatures)

    def add_meta_graph_and_variables(
        self, sess: Any, tags: Iterable[str], signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Any] | None = None, legacy_init_op: Any = None,
        clear_devices: bool = False, main_op: Any = None, strip_default_attrs: bool = False,
        saver: Saver | None = None,
    ) -> None:  # fmt: skip
        """Adds the default graph, and saves a session's variables.

        The arguments are those of `add_meta_graph`, and:

        Args:
            sess: the session that holds the variables.

        Raises:
            AssertionError: variables were saved before, or a signature is incomplete.
            KeyError: a signature has a reserved name.
            TypeError: `main_op` is no operation, or an asset no constant string.
            ValueError: the graph has a main op already.
        """
        self._check_saved(False)
        signatures = _with_ops(signature_def_map, None, None)
        self._collect(assets_collection, legacy_init_op if main_op is None else main_op)
        saver = self._save_variables(sess, saver)
        meta = saver.export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        self._add(meta, tags, signatures)
        self._has_saved_variables = True

    def _add_train_op(self, train_op: Any) -> None:
        """Notes in the graph, for the next meta graph, what trains it; estimators call this."""
        if train_op is None:
            return
        if not isinstance(train_op, Tensor | Operation):
            raise TypeError(f"train_op needs to be a Tensor or Op: {train_op!r}")
        add_to_collection(constants.TRAIN_OP_KEY, train_op)

    def _collect(self, assets: Iterable[Any] | None, main_op: Any) -> None:
        self._add_assets(assets, _collect_asset)
        if main_op is None:
            return
        if not isinstance(main_op, Operation):
            raise TypeError(f"main_op needs to be an Operation: {main_op!r}")
        for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
            if get_collection(key):
                raise ValueError(
                    f"Graph already contains one or more main ops under the collection {key}."
                )
        add_to_collection(constants.MAIN_OP_KEY, main_op)


Builder = SavedModelBuilder


def _saver(saver: Saver | None) -> Saver:
    return saver or Saver(all_saveable_objects(), sharded=True, allow_empty=True)


# ---------------------------------------------------------------- signatures
def _with_ops(signatures: Mapping[str, Any] | None, init_op: Any, train_op: Any) -> dict[str, Any]:
    """The checked signatures, and those that name the two ops."""
    out = dict(signatures or {})
    for signature in out.values():
        for infos in (signature.inputs, signature.outputs):
            for name in infos:
                _check_info(infos[name])
    for what, key, op in (
        ("initialization", constants.INIT_OP_SIGNATURE_KEY, init_op),
        ("the train op", constants.TRAIN_OP_SIGNATURE_KEY, train_op),
    ):
        if key in out:
            raise KeyError(
                f'SignatureDef map key "{key}" is reserved for {what}. Please use a different key.'
            )
        if op is not None:
            out[key] = op_signature_def(op, key)
    return out


def _check_info(info: Any) -> None:
    """Checks that a `TensorInfo` says which tensor it means, and of which type."""
    start = "All TensorInfo protos used in the SignatureDefs must have"
    encoding = None if info is None else info.WhichOneof("encoding")
    if info is None:
        raise AssertionError(f"{start} the name and dtype fields set.")
    if encoding is None:
        raise AssertionError(
            f"{start} one of the 'encoding' fields (e.g., name or coo_sparse) set: {info}"
        )
    if encoding == "composite_tensor":
        for part in info.composite_tensor.components:
            _check_info(part)
    elif info.dtype == protos.DataType.DT_INVALID:
        raise AssertionError(f"{start} the dtype field set: {info}")


# ---------------------------------------------------------------- assets
def _asset_path(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        raise TypeError("Asset path tensor must be a Tensor.")
    if tensor.op.type != "Const":
        raise TypeError("Asset path tensor must be of type constant.")
    if tensor.dtype != dtypes.string:
        raise TypeError("Asset path tensor must be of dtype string.")
    values = tensor.op.get_attr("value").string_val
    if len(values) != 1:
        raise TypeError("Asset path tensor must be a scalar.")
    if not values[0]:
        raise ValueError(f"Invalid asset filepath tensor {tensor}")
    return as_path(values[0])


def _asset_into(meta: Any) -> Callable[[str, Tensor], None]:
    def note(name: str, tensor: Tensor) -> None:
        asset = meta.asset_file_def.add(filename=name)
        asset.tensor_info.name = tensor.name

    return note


def _collect_asset(name: str, tensor: Tensor) -> None:
    asset = protos.AssetFileDef(filename=name)
    asset.tensor_info.name = tensor.name
    packed = AnyMessage()
    packed.Pack(asset)
    add_to_collection(constants.ASSETS_KEY, packed)


def get_asset_filename_to_add(asset_filepath: Any, asset_filename_map: Mapping[str, str]) -> str:
    """The name under which a model keeps a file.

    Args:
        asset_filepath: the file.
        asset_filename_map: names that are taken, with the files they stand for.

    Returns:
        The file's own name, with a number behind it where another file has that name.
    """
    source = as_path(asset_filepath)
    own = name = os.path.basename(source)
    known = asset_filename_map.get(name)
    if known is None or as_path(known) == source or filecmp.cmp(source, known, shallow=False):
        return name
    number = 1
    while name in asset_filename_map:
        name = f"{own}_{number}"
        number += 1
    return name


def copy_assets_to_destination_dir(
    asset_filename_map: Mapping[str, str], destination_dir: Any
) -> None:
    """Copies files into the assets directory of a model; one that is there already stays.

    Args:
        asset_filename_map: names in the model, with the files to copy.
        destination_dir: the model's directory.
    """
    directory = utils.get_or_create_assets_dir(destination_dir)
    where = filesystems.of(directory)
    for name, source in asset_filename_map.items():
        target = os.path.join(directory, as_path(name))
        if where.exists(target):
            continue
        if not (filesystems.is_local(as_path(source)) and filesystems.is_local(target)):
            filesystems.copy(as_path(source), target)
            continue
        with atomic_write(target) as copy, where.open(as_path(source), "rb", None, None) as file:
            while data := file.read(1 << 20):
                copy.write(data)
    _log.info("Assets written to: %s", directory)
