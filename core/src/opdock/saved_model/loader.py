"""`tf.saved_model.loader`: SavedModels into sessions."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from opdock import errors
from opdock.graph.nodes.collections import get_collection
from opdock.graph.nodes.graph import Graph
from opdock.io import protos
from opdock.io.files import as_path
from opdock.io.parsing import parsed
from opdock.saved_model import constants, utils
from opdock.saved_model.file import maybe_saved_model_directory, meta_graph_of, parse_saved_model
from opdock.saved_model.signature_def_utils import load_op_from_signature_def
from opdock.train.saveable import all_saveable_objects
from opdock.train.saver import Saver, import_meta_graph_with_return_elements

__all__ = [
    "SavedModelLoader", "contains_saved_model", "get_asset_tensors", "get_init_op", "get_train_op",
    "load", "maybe_saved_model_directory", "parse_saved_model",
]  # fmt: skip

_log = logging.getLogger("tensorflow")

contains_saved_model = maybe_saved_model_directory


def load(
    sess: Any, tags: Iterable[str], export_dir: Any, import_scope: str | None = None,
    **saver_kwargs: Any,
) -> Any:  # fmt: skip
    """Adds a model to a session's graph, restores its variables and runs its main op.

    Args:
        sess: the session.
        tags: those of the meta graph, all of them.
        export_dir: the model's directory.
        import_scope: prefix of the new names; what is returned does not have it.
        **saver_kwargs: further arguments of `tf.train.import_meta_graph`.

    Returns:
        The `MetaGraphDef`, whose signatures name the inputs and outputs.

    Raises:
        IOError: there is no model, or it cannot be parsed.
        RuntimeError: no meta graph has these tags.
    """
    return SavedModelLoader(export_dir).load(sess, tags, import_scope, **saver_kwargs)


class SavedModelLoader:
    """Loads a SavedModel, all at once or step by step.

    Args:
        export_dir: the model's directory.

    Raises:
        IOError: there is no model, or it cannot be parsed.
    """

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = export_dir
        self._variables_path = utils.get_variables_path(export_dir)
        self._saved_model = parse_saved_model(export_dir)

    @property
    def export_dir(self) -> Any:
        """The model's directory."""
        return self._export_dir

    @property
    def variables_path(self) -> str:
        """The prefix of the checkpoint that holds the variables."""
        return self._variables_path

    @property
    def saved_model(self) -> Any:
        """The `SavedModel` message."""
        return self._saved_model

    def get_meta_graph_def_from_tags(self, tags: Iterable[str]) -> Any:
        """The `MetaGraphDef` that has exactly these tags; RuntimeError when there is none."""
        found = meta_graph_of(self._saved_model, tags)
        if found is None:
            available = [set(m.meta_info_def.tags) for m in self._saved_model.meta_graphs]
            shown = str(tags).strip("[]")
            raise RuntimeError(
                f"MetaGraphDef associated with tags {shown} could not be found in SavedModel. To"
                " inspect available tag-sets in the SavedModel, please use the SavedModel CLI:"
                f" `saved_model_cli`\navailable_tags: {available}"
            )
        return found

    def load_graph(
        self, graph: Graph, tags: Iterable[str], import_scope: str | None = None,
        **saver_kwargs: Any,
    ) -> tuple[Saver | None, list[Any] | None]:  # fmt: skip
        """Adds the nodes and collections of a meta graph to a graph.

        Args:
            graph: the graph.
            tags: those of the meta graph.
            import_scope: prefix of the new names.
            **saver_kwargs: further arguments of `tf.train.import_meta_graph`, `return_elements`
                among them.

        Returns:
            A saver, None if the meta graph has no variables, and the elements asked for.
        """
        meta = self.get_meta_graph_def_from_tags(tags)
        with graph.as_default():
            return import_meta_graph_with_return_elements(
                meta, import_scope=import_scope, **saver_kwargs
            )

    def restore_variables(
        self, sess: Any, saver: Saver | None, import_scope: str | None = None
    ) -> None:
        """Gives the variables their values.

        Args:
            sess: the session.
            saver: what `load_graph` returned.
            import_scope: prefix of the names.

        Raises:
            ValueError: there are variables and no saver.
        """
        with sess.graph.as_default():
            if saver is None and not all_saveable_objects(scope=import_scope):
                _log.info(
                    "The specified SavedModel has no variables; no checkpoints were restored."
                )
            elif isinstance(saver, Saver):
                saver.restore(sess, self._variables_path)
            else:
                raise ValueError(
                    "No tf.train.Saver object was passed to the function"
                    " SavedModelLoader.restore_variables. Since there are variables in the graph, a"
                    " saver is required."
                )

    def run_init_ops(self, sess: Any, tags: Iterable[str], import_scope: str | None = None) -> None:
        """Runs the model's main op, with the places of its assets fed.

        Args:
            sess: the session.
            tags: those of the meta graph.
            import_scope: prefix of the names.
        """
        meta = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            assets = get_asset_tensors(self._export_dir, meta, import_scope)
            init_op = get_init_op(meta, import_scope)
            if init_op is not None:
                sess.run(fetches=[init_op], feed_dict=assets)

    def load(
        self, sess: Any, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> Any:
        """All of the above in one; see `tf.saved_model.loader.load`."""
        with sess.graph.as_default():
            saver, _ = self.load_graph(sess.graph, tags, import_scope, **saver_kwargs)
            self.restore_variables(sess, saver, import_scope)
            self.run_init_ops(sess, tags, import_scope)
        return self.get_meta_graph_def_from_tags(tags)


# ---------------------------------------------------------------- what a meta graph names
def get_asset_tensors(
    export_dir: Any, meta_graph_def_to_load: Any, import_scope: str | None = None
) -> dict[str, bytes]:
    """The places of a model's assets, by the names of the tensors that are to have them.

    Args:
        export_dir: the model's directory.
        meta_graph_def_to_load: a `MetaGraphDef`.
        import_scope: prefix of the names.

    Raises:
        InvalidArgumentError: an asset's name leads out of the model's directory.
    """
    assets = list(meta_graph_def_to_load.asset_file_def)
    collections = meta_graph_def_to_load.collection_def
    if not assets and constants.ASSETS_KEY in collections:
        for packed in collections[constants.ASSETS_KEY].any_list.value:
            assets.append(parsed(protos.AssetFileDef, packed.value, "an asset of the model"))
    folder = utils.get_assets_dir(as_path(export_dir))
    prefix = f"{import_scope}/" if import_scope else ""
    return {prefix + a.tensor_info.name: _within(folder, a.filename).encode() for a in assets}


def _within(folder: str, name: str) -> str:
    parts = name.split("/")
    if os.path.isabs(name) or os.pardir in parts or "\0" in name:
        raise errors.InvalidArgumentError(
            None, None, f"The asset {name!r} of a model lies outside of its folder {folder}"
        )
    return os.path.join(folder, name)


def get_init_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The op of the default graph to run when a meta graph was loaded, or None.

    Raises:
        RuntimeError: the meta graph names several.
    """
    key = constants.INIT_OP_SIGNATURE_KEY
    found = _op_of_signature(meta_graph_def, key, import_scope)
    for name in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        found = found if found is not None else op_of_collection(meta_graph_def, name)
    return found


def get_train_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The op of the default graph that trains a meta graph that was loaded, or None.

    Raises:
        RuntimeError: the meta graph names several.
    """
    found = _op_of_signature(meta_graph_def, constants.TRAIN_OP_SIGNATURE_KEY, import_scope)
    return found if found is not None else op_of_collection(meta_graph_def, constants.TRAIN_OP_KEY)


def _op_of_signature(meta: Any, key: str, import_scope: str | None) -> Any:
    if key not in meta.signature_def:
        return None
    return load_op_from_signature_def(meta.signature_def[key], key, import_scope)


def op_of_collection(meta: Any, key: str = constants.MAIN_OP_KEY) -> Any:
    """The one op that a collection of a meta graph which was loaded has, or None.

    Raises:
        RuntimeError: the meta graph names several.
    """
    if key not in meta.collection_def:
        return None
    names = meta.collection_def[key].node_list.value
    if len(names) != 1:
        raise RuntimeError(f"Expected exactly one SavedModel init op. Found: {names}")
    return get_collection(key)[0]
