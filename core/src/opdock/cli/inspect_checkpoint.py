"""`opdock inspect-checkpoint`: the tensors of a checkpoint."""

from __future__ import annotations

import os
import re
from math import prod
from typing import Any, Final

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.nearest import meant

_KEYS: Final = {
    "tensors": "of each its name, type and shape",
    "parameters": "how many numbers they have together, but for what --exclude names",
}


@click.command(
    "inspect-checkpoint", cls=Command, example="opdock inspect-checkpoint model.ckpt", keys=_KEYS
)
@click.argument("checkpoint", metavar="PREFIX")
@click.option("--tensor", default="", help="Print the value of this tensor.")
@click.option("--values", is_flag=True, help="Print the values of all tensors.")
@click.option("--exclude", default="", help="Regular expression of tensors not to count.")
@json_option
def command(checkpoint: str, tensor: str, values: bool, exclude: str, json_output: bool) -> None:
    """Print names, types and shapes of the tensors in a checkpoint, and count the parameters.

    PREFIX is what Saver.save returned, or a directory, of which the latest checkpoint is taken.
    """
    if os.path.isdir(checkpoint):
        from opdock.train.checkpoint_management import latest_checkpoint

        checkpoint = latest_checkpoint(checkpoint) or checkpoint
    if json_output:
        emit(_described(checkpoint, tensor, exclude))
        return
    from opdock.tools.inspect_checkpoint import print_tensors_in_checkpoint_file

    if not print_tensors_in_checkpoint_file(
        checkpoint, tensor, values, count_exclude_pattern=exclude
    ):
        raise SystemExit(2)


def _described(checkpoint: str, tensor: str, exclude: str) -> dict[str, Any]:
    from opdock.io.checkpoint_reader import NewCheckpointReader

    reader = NewCheckpointReader(checkpoint)
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if tensor and tensor not in shapes:
        raise Wrong(f"the checkpoint has no tensor {tensor!r}{meant(tensor, shapes)}")
    wanted = [tensor] if tensor else sorted(shapes)
    rows = [{"name": n, "type": types[n].name, "shape": shapes[n]} for n in wanted]
    counted = [n for n in shapes if not (exclude and re.search(exclude, n))]
    return {"tensors": rows, "parameters": sum(prod(shapes[n]) for n in counted)}
