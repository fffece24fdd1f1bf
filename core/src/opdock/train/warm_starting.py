"""`tf.train.init_from_checkpoint`: variables that start with the values of a checkpoint."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple

from opdock import errors
from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.variable_scope import variable_store
from opdock.io.files import as_path
from opdock.ops.io import restore_v2_op
from opdock.shapes import TensorShape
from opdock.train.checkpoint_management import latest_checkpoint
from opdock.train.checkpoint_utils import load_checkpoint
from opdock.train.saveable import saveables_for

__all__ = ["VocabInfo", "init_from_checkpoint", "warm_start"]

_log = logging.getLogger("tensorflow")


def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: dict[str, Any]) -> None:
    """Replaces the initializers of variables by restores from a checkpoint.

    Args:
        ckpt_dir_or_file: a directory, whose latest checkpoint is taken, or a prefix.
        assignment_map: what to read (a tensor's name, or "scope/") to where it goes: a variable, a
            list of partitions, a variable's name, or "scope/". "/" is the root scope.

    Raises:
        ValueError: a tensor or variable does not exist, or shapes differ.
    """
    path = as_path(ckpt_dir_or_file)
    reader = load_checkpoint(path)
    prefix = (latest_checkpoint(path) or path) if os.path.isdir(path) else path
    shapes = reader.get_variable_to_shape_map()
    known = _variables_by_name()
    for source, target in sorted(assignment_map.items()):
        variable = known.get(target) if isinstance(target, str) else target
        if variable is not None:
            if source not in shapes:
                raise ValueError(f"Tensor {source} is not found in {path} checkpoint {shapes}")
            _initialize(variable, prefix, source, shapes[source])
            continue
        scope = target.rpartition("/")[0] if "/" in target else ""
        if not source.endswith("/"):
            raise ValueError(
                f"Assignment map with scope only name {scope} should map to scope only {source}."
                " Should be 'scope/': 'other_scope/'."
            )
        for name in sorted(n for n in known if not scope or n.startswith(f"{scope}/")):
            rest = name[len(scope) :]
            full = rest if target == "/" else rest.removeprefix("/")
            full = (full if source == "/" else source + full).rstrip("/")
            if full not in shapes:
                raise ValueError(
                    f"Tensor {full} ({name} in {scope or '/'}) is not found in {path} checkpoint"
                )
            _initialize(known[name], prefix, full, shapes[full])


class VocabInfo(NamedTuple):
    """How the rows of a variable that belong to words moved between two vocabularies.

    Attributes:
        new_vocab: the file of the words now, one a line.
        new_vocab_size: how many lines of it count.
        num_oov_buckets: rows behind them for other words; they start anew.
        old_vocab: the file of the words in the checkpoint.
        old_vocab_size: how many lines of it count; -1 for all.
        backup_initializer: starts what is new; zeros by default.
        axis: 0 where rows are words, 1 where columns are.
    """

    new_vocab: Any
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: Any
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


def warm_start(
    ckpt_to_initialize_from: Any,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: dict[str, str] | None = None,
) -> None:
    """Starts variables with the values of a checkpoint.

    Args:
        ckpt_to_initialize_from: a directory, whose latest checkpoint is taken, or a prefix.
        vars_to_warm_start: a regular expression over trainable variables, a list of them over all
            variables, a list of variables, or None for those with a vocabulary alone.
        var_name_to_vocab_info: variable -> how its words moved.
        var_name_to_prev_var_name: variable -> its name in the checkpoint, where that is another.

    Raises:
        ValueError: what to start is none of these, or a mapping names a variable not started.
        UnimplementedError: a vocabulary is given.
    """
    renamed, vocabularies = var_name_to_prev_var_name or {}, var_name_to_vocab_info or {}
    chosen = _chosen(vars_to_warm_start)
    for given, what in ((renamed, "var_name_to_prev_var_name"), (vocabularies, "vocab_info")):
        unused = sorted(given.keys() - chosen.keys())
        if unused:
            raise ValueError(
                f"You provided the following variables in {what} that were not used: {unused}. "
                f"Perhaps you misspelled them? Here is the list of viable variable names: "
                f"{sorted(chosen)}"
            )
    if vocabularies:
        raise errors.UnimplementedError(
            None, None, f"Warm starts with another vocabulary are not there: {list(vocabularies)}"
        )
    wanted = chosen if vars_to_warm_start else {}
    init_from_checkpoint(
        ckpt_to_initialize_from,
        {renamed.get(name, name): parts for name, parts in wanted.items()},
    )


def _chosen(given: Any) -> dict[str, Any]:
    """Name -> variable, or the partitions of one, for what `warm_start` is told to start."""
    if given is None or isinstance(given, str):
        found = get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=given)
    elif not isinstance(given, list):
        raise ValueError(
            f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(given)}"
        )
    elif all(isinstance(v, str) for v in given):
        found = [v for key in given for v in get_collection(GraphKeys.GLOBAL_VARIABLES, scope=key)]
    elif any(isinstance(v, str) for v in given):
        raise ValueError(
            "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given "
            f"types are {[type(v) for v in given]}"
        )
    else:
        found = given
    chosen: dict[str, list[Any]] = {}
    for variable in found:
        slices = getattr(variable, "_save_slice_info", None)
        name = variable.op.name if slices is None else slices.full_name
        chosen.setdefault(name, []).append(variable)
    return {k: v[0] if len(v) == 1 else v for k, v in chosen.items()}


def _variables_by_name() -> dict[str, Any]:
    """What `get_variable` made, by name; the partitions of one variable under its name."""
    store = variable_store()
    parts = {id(p) for whole in store._partitioned.values() for p in whole}
    whole = {k: v for k, v in store._variables.items() if id(v) not in parts}
    return {**whole, **store._partitioned}


def _initialize(variable: Any, prefix: str, key: str, saved: list[int]) -> None:
    parts = list(variable) if _is_partitioned(variable) else [variable]
    for part in parts:
        info = getattr(part, "_save_slice_info", None) if _is_partitioned(variable) else None
        full = part.get_shape() if info is None else TensorShape(info.full_shape)
        if not full.is_compatible_with(TensorShape(saved)):
            raise ValueError(
                f"Shape of variable {part.name} ({full}) doesn't match with shape of tensor {key}"
                f" ({saved}) from checkpoint reader."
            )
        with device(part.device), device("/cpu:0"):
            restored = restore_v2_op(
                prefix, [key], ["" if info is None else info.spec],
                dtypes=[part.dtype.base_dtype], name="checkpoint_initializer",
            )[0]  # fmt: skip
            (saveable,) = saveables_for([part])
            done = saveable.restore([restored], None)
        part._initializer_op = getattr(done, "op", done)
        restored.set_shape(part.get_shape())
        part._initial_value = restored
        _log.debug("Initialize variable %s from checkpoint %s with %s", part.name, prefix, key)


def _is_partitioned(variable: Any) -> bool:
    return isinstance(variable, (list, tuple)) or hasattr(variable, "_get_partitions")
