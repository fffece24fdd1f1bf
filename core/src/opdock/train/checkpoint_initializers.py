"""`tf.train.init_from_checkpoint`: variables that start with the values of a checkpoint."""

from __future__ import annotations

import logging
from typing import Any

from opdock.graph.nodes.scopes import device
from opdock.graph.variables.variable_scope import variable_store
from opdock.io import filesystems
from opdock.io.files import as_path
from opdock.ops.io import restore_v2_op
from opdock.shapes import TensorShape
from opdock.train.checkpoint_management import latest_checkpoint
from opdock.train.checkpoint_utils import load_checkpoint
from opdock.train.saveable import saveables_for

__all__ = ["init_from_checkpoint"]

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
    prefix = (latest_checkpoint(path) or path) if filesystems.isdir(path) else path
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


def _variables_by_name() -> dict[str, Any]:
    """What `get_variable` made, by name; the partitions of one variable under its name."""
    store = variable_store()
    parts = {id(p) for whole in store._partitioned_vars.values() for p in whole}
    whole = {k: v for k, v in store._vars.items() if id(v) not in parts}
    return {**whole, **store._partitioned_vars}


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
