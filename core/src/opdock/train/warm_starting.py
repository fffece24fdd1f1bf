"""`tf.train.warm_start`: variables with the values of a checkpoint, by other vocabularies too."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, Self

import numpy as np

from opdock.graph.nodes.collections import GraphKeys, get_collection
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.partitioned import PartitionedVariable, parts_of
from opdock.graph.variables.variable import Variable
from opdock.io import filesystems
from opdock.io.files import as_path
from opdock.io.vocabularies import vocabulary_remapping
from opdock.ops.array import reshape
from opdock.ops.gather import gather
from opdock.ops.io import restore_v2_op
from opdock.ops.select import where_v2
from opdock.train.checkpoint_initializers import init_from_checkpoint
from opdock.train.checkpoint_management import latest_checkpoint, object_graph_keys
from opdock.train.checkpoint_utils import load_checkpoint
from opdock.train.saveable import names_of, saveables_for

__all__ = ["VocabInfo", "warm_start"]

_log = logging.getLogger("tensorflow")


class _VocabInfo(NamedTuple):
    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class VocabInfo(_VocabInfo):
    """Which words the rows or columns of a variable stood for, and which they stand for now.

    Args:
        new_vocab: file of the new vocabulary, a word a line.
        new_vocab_size: how many of its words count.
        num_oov_buckets: how many rows follow for words that are not in it.
        old_vocab: file of the vocabulary of the checkpoint.
        old_vocab_size: how many of its words count, all when -1.
        backup_initializer: makes the values of words that the checkpoint does not have, zeros when
            None.
        axis: 0 for rows, 1 for columns.

    Raises:
        ValueError: `axis` is another number.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Checks the axis."""
        made = super().__new__(cls, *args, **kwargs)
        if made.axis not in (0, 1):
            raise ValueError(
                "The only supported values for the axis argument are 0 and 1.  Provided axis:"
                f" {made.axis}"
            )
        return made


def warm_start(
    ckpt_to_initialize_from: Any, vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: dict[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: dict[str, str] | None = None,
) -> None:  # fmt: skip
    """Replaces the initializers of variables by values of a checkpoint.

    Args:
        ckpt_to_initialize_from: a directory, whose latest checkpoint is taken, or a prefix.
        vars_to_warm_start: a regular expression of trainable variables, a list of such of all
            global variables, a list of variables, or None for those alone that have a vocabulary.
        var_name_to_vocab_info: variables whose rows or columns stand for words.
        var_name_to_prev_var_name: the names that variables have in the checkpoint, where they
            differ.

    Raises:
        ValueError: a name in a dict is not used, a tensor does not exist, or shapes differ.
    """
    _log.info("Warm-starting from: %s", ckpt_to_initialize_from)
    path = as_path(ckpt_to_initialize_from)
    groups = _grouped(vars_to_warm_start)
    vocabularies = var_name_to_vocab_info or {}
    previous = var_name_to_prev_var_name or _renames(path, groups)
    plain: dict[str, Any] = {}
    count = 0
    for name, group in groups.items():
        source = previous.get(name, name)
        if name in vocabularies:
            _remap(group, vocabularies[name], path, source)
        elif vars_to_warm_start:
            plain[source] = group[0] if len(group) == 1 else group
        else:
            continue
        count += 1
    init_from_checkpoint(path, plain)
    _log.info("Warm-started %d variables.", count)
    for what, given in (
        ("var_name_to_prev_var_name", previous), ("var_name_to_vocab_info", vocabularies),
    ):  # fmt: skip
        unused = set(given) - set(groups)
        if unused:
            raise ValueError(
                f"You provided the following variables in {what} that were not used: {unused}. "
                " Perhaps you misspelled them?  Here is the list of viable variable names:"
                f" {list(groups)}"
            )


def _grouped(wanted: Any) -> dict[str, list[Any]]:
    """The variables by name, partitions together."""
    if isinstance(wanted, str) or wanted is None:
        _log.info("Warm-starting variables only in TRAINABLE_VARIABLES.")
        found = get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=wanted)
    elif not isinstance(wanted, list):
        raise ValueError(
            f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(wanted)}"
        )
    elif all(isinstance(v, str) for v in wanted):
        every = (get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope) for scope in wanted)
        found = [v for variables in every for v in variables]
    elif all(isinstance(v, Variable | PartitionedVariable) for v in wanted):
        found = wanted
    else:
        raise ValueError(
            "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given"
            f" types are {[type(v) for v in wanted]}"
        )
    groups: dict[str, list[Any]] = {}
    for variable in found:
        (name,) = names_of([variable])
        groups.setdefault(name, []).extend(_parts_of(variable))
    return groups


# ---------------------------------------------------------------- one variable
def infer_var_name(var: list[Any]) -> str:
    """The name under which a variable is saved, given it or its parts in a list.

    Raises:
        TypeError: the list holds parts of several variables.
    """
    names = names_of(var)
    if len(names) > 1:
        raise TypeError(f"`var` = {var} passed as arg violates the constraints: it is {names}")
    return next(iter(names))


def var_info(var: Any, prev_tensor_name: str | None = None) -> tuple[str, Any]:
    """The key of a variable in a checkpoint, and the variable or the list of its parts.

    Args:
        var: a variable, a list of the parts of one, or a partitioned variable.
        prev_tensor_name: the key, if it is not the variable's name.

    Raises:
        TypeError: `var` is something else.
    """
    parts = _parts_of(var)
    return prev_tensor_name or infer_var_name(parts), var if isinstance(var, Variable) else parts


def warm_start_var_with_vocab(
    var: Any, current_vocab_path: str, current_vocab_size: int, prev_ckpt: Any,
    prev_vocab_path: str, previous_vocab_size: int = -1, current_oov_buckets: int = 0,
    prev_tensor_name: str | None = None, initializer: Any = None, axis: int = 0,
) -> None:  # fmt: skip
    """Replaces the initializer of one variable whose rows or columns stand for words.

    Args:
        var: a variable, a list of the parts of one, or a partitioned variable.
        current_vocab_path: as `new_vocab` of a `VocabInfo`.
        current_vocab_size: as `new_vocab_size`.
        prev_ckpt: a directory, whose latest checkpoint is taken, or a prefix.
        prev_vocab_path: as `old_vocab`.
        previous_vocab_size: as `old_vocab_size`.
        current_oov_buckets: as `num_oov_buckets`.
        prev_tensor_name: the key in the checkpoint, if it is not the variable's name.
        initializer: as `backup_initializer`.
        axis: as there.

    Raises:
        TypeError: `var` is something else.
        ValueError: an argument is missing, or the checkpoint has no such tensor.
    """
    info = VocabInfo(
        current_vocab_path, current_vocab_size, current_oov_buckets, prev_vocab_path,
        previous_vocab_size, initializer, axis,
    )  # fmt: skip
    parts = _parts_of(var)
    _remap(parts, info, as_path(prev_ckpt), prev_tensor_name or infer_var_name(parts))


def _parts_of(var: Any) -> list[Any]:
    parts = parts_of(var)
    if not all(isinstance(v, Variable) for v in parts):
        raise TypeError(
            "var MUST be one of the following: a Variable, list of Variable or"
            f" PartitionedVariable, but is {type(var)}"
        )
    return parts


def _prefix_of(path: str) -> str:
    return (latest_checkpoint(path) or path) if filesystems.isdir(path) else path


def _renames(path: str, names: Any) -> dict[str, str]:
    """The keys of variables in an object-based checkpoint; nothing of another checkpoint."""
    keys = object_graph_keys(_prefix_of(path))
    if keys is None:
        return {}
    missing = set(names) - keys.keys()
    if missing:
        raise ValueError(
            "Attempting to warm-start from an object-based checkpoint, but found that the"
            " checkpoint did not contain values for all variables. The following variables were"
            f" missing: {missing}"
        )
    return {name: keys[name] for name in names}


# ---------------------------------------------------------------- vocabularies
def _remap(parts: list[Any], info: VocabInfo, path: str, key: str) -> None:
    """Gives the parts of a variable initializers that look words up in the old variable."""
    if not (info.new_vocab and info.new_vocab_size and info.old_vocab):
        raise ValueError(
            "Invalid args: Must provide all of [current_vocab_path, current_vocab_size, prev_ckpt,"
            " prev_vocab_path}."
        )
    shape = load_checkpoint(path).get_variable_to_shape_map().get(key)
    if shape is None:
        raise ValueError(f"Tensor {key} is not found in {path} checkpoint")
    places = _places(info)
    for part in parts:
        slice_info = getattr(part, "_save_slice_info", None)
        size = part.get_shape().as_list()
        offset = [0] * len(size) if slice_info is None else list(slice_info.var_offset)
        mine = places[offset[info.axis] : offset[info.axis] + size[info.axis]]
        other = 1 - info.axis
        with device(part.device), device("/cpu:0"):
            old = restore_v2_op(
                _prefix_of(path), [key], [""], dtypes=[part.dtype.base_dtype],
                name="checkpoint_initializer",
            )[0]  # fmt: skip
            old.set_shape(shape)
            if len(size) > 1:
                # The other axis is the same in both, and may be cut into parts.
                columns = np.arange(offset[other], offset[other] + size[other])
                old = gather(old, columns, axis=other)
            kept = gather(old, np.maximum(mine, 0), axis=info.axis)
            rank = [1] * len(size)
            rank[info.axis] = len(mine)
            value = where_v2(reshape(mine >= 0, rank), kept, _fresh(info, part, size))
            (saveable,) = saveables_for([part])
            done = saveable.restore([value], None)
        part._initializer_op = getattr(done, "op", done)
        part._initial_value = value


def _places(info: VocabInfo) -> np.ndarray[Any, Any]:
    """Where each new word is in the old vocabulary, -1 for none."""
    known = vocabulary_remapping(
        as_path(info.new_vocab), as_path(info.old_vocab), 0, info.new_vocab_size,
        info.old_vocab_size,
    )  # fmt: skip
    return np.append(known, np.full(info.num_oov_buckets, -1, np.int64))


def _fresh(info: VocabInfo, part: Any, size: list[int]) -> Any:
    dtype = part.dtype.base_dtype
    if info.backup_initializer is None:
        return np.zeros(size, dtype.as_numpy_dtype)
    return info.backup_initializer(size, dtype=dtype)
