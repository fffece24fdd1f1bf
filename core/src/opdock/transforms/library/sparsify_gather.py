"""`sparsify_gather`: rows of a column of numbers, most of them 0, come from a table."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from opdock import dtypes, errors
from opdock.io.checkpoint_reader import NewCheckpointReader
from opdock.transforms.definitions import attribute
from opdock.transforms.editor import Editor, constant_value
from opdock.transforms.patterns import ANY, Match, Pattern, replace
from opdock.transforms.registry import Context

_LEAST: Final = 1e-5
"""What is smaller counts as 0."""
_ROWS: Final = Pattern("Identity", Pattern("Const|Variable|VariableV2", name="weights"))


def sparsify_gather(
    graph_def: Any, context: Context, *, input_checkpoint: str | None = None,
    group_init_node: str = "group_deps",
) -> Any:  # fmt: skip
    """Puts a hash table in the place of weights of shape [N, 1] from which rows are gathered.

    Linear models over many features have such weights. The tables must be filled before the graph
    runs: by the node `group_init_node`.

    Args:
        graph_def: a `GraphDef`.
        context: its inputs and outputs.
        input_checkpoint: the prefix of a checkpoint with the values of variables; without it the
            weights must be constants.
        group_init_node: the name of the node that fills the tables.

    Raises:
        FailedPreconditionError: weights are no column of float32, or rows are not gathered along
            their first axis.
        InvalidArgumentError: weights are a variable and there is no checkpoint, or not in it.
    """
    editor = Editor(graph_def, (*context.ends, group_init_node))
    for node in editor:
        node.attr.pop("_output_shapes", None)
    reader = None if input_checkpoint is None else NewCheckpointReader(input_checkpoint)
    fills: list[str] = []

    def sparsify(match: Match) -> bool:
        if "axis" in match and int(constant_value(match["axis"])):
            raise _refusal(
                match, f"GatherV2 over axis 0. Found axis {int(constant_value(match['axis']))}."
            )
        keys, values = _cells(match, _value(match["weights"], reader))
        fills.append(_look_up(editor, match, keys, values))
        return True

    replace(editor, Pattern("Gather", _ROWS, ANY), sparsify)
    replace(editor, Pattern("GatherV2", _ROWS, ANY, Pattern("Const", name="axis")), sparsify)
    if fills:
        old = editor.nodes.get(group_init_node)
        before = [] if old is None else list(old.input)
        editor.make("NoOp", group_init_node, [*before, *(f"^{name}" for name in fills)])
    return editor.result()


def _refusal(match: Match, needed: str) -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError(
        None, None, f"sparsify_gather: '{match[''].name}': Transform only applicable to {needed}"
    )


def _value(node: Any, reader: Any) -> np.ndarray[Any, Any]:
    if node.op == "Const":
        return constant_value(node)
    if reader is None or not reader.has_tensor(node.name):
        raise errors.InvalidArgumentError(
            None, None,
            f"sparsify_gather: the value of the variable '{node.name}' is not in input_checkpoint",
        )  # fmt: skip
    value: np.ndarray[Any, Any] = reader.get_tensor(node.name)
    return value


def _cells(
    match: Match, value: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The rows that are not 0 and their numbers."""
    weights = match["weights"].name
    if value.dtype != np.float32:
        raise _refusal(match, f"weights of float. Found '{weights}' of {value.dtype}.")
    if value.ndim != 2 or value.shape[1] != 1:
        raise _refusal(
            match, f"weights of shape [N, 1]. Instead '{weights}' has {list(value.shape)}."
        )
    column = value[:, 0]
    # A table is filled with one row at least.
    rows = np.flatnonzero(np.abs(column) >= _LEAST) if column.any() else np.zeros(1, np.int64)
    rows = rows if rows.size else np.zeros(1, np.int64)
    return rows.astype(np.int64), column[rows] if column.size else np.zeros(1, np.float32)


def _look_up(editor: Editor, match: Match, keys: Any, values: Any) -> str:
    """Puts the table and the look-up; returns the node that fills the table."""
    gather, name = match[""], editor.unique(f"{match['weights'].name}/HashTable")
    prefix = name.removesuffix("/HashTable")
    table = editor.make(
        "HashTable", name, shared_name=name, key_dtype=dtypes.int64, value_dtype=dtypes.float32
    ).name
    inputs = [
        editor.constant(editor.unique(f"{prefix}/{part}"), value)
        for part, value in (("indices", keys), ("values", values))
    ]
    fill = editor.make(
        "InitializeTable", editor.unique(f"{prefix}/InitializeTable"), [table, *inputs],
        Tkey=dtypes.int64, Tval=dtypes.float32,
    )  # fmt: skip
    ids = gather.input[1]
    if attribute(gather, "Tindices") is not dtypes.int64:
        ids = editor.make(
            "Cast", editor.unique(f"{gather.name}/Cast"), [ids],
            SrcT=attribute(gather, "Tindices"), DstT=dtypes.int64,
        ).name  # fmt: skip
    zero = editor.constant(editor.unique(f"{gather.name}/Const"), np.float32(0))
    found = editor.make(
        "LookupTableFind", editor.unique(f"{gather.name}/LookupTableFind"), [table, ids, zero],
        Tin=dtypes.int64, Tout=dtypes.float32,
    )  # fmt: skip
    last = editor.constant(editor.unique(f"{gather.name}/ExpandDims/Const"), np.int32(-1))
    editor.make(
        "ExpandDims", gather.name, [found.name, last], T=dtypes.float32, Tdim=dtypes.int32
    )  # fmt: skip
    return str(fill.name)
