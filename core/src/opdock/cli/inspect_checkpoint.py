"""`opdock inspect-checkpoint`: the tensors of a checkpoint."""

from __future__ import annotations

import sys

import click


@click.command("inspect-checkpoint")
@click.argument("checkpoint", metavar="PREFIX")
@click.option("--tensor", default="", help="Print the value of this tensor.")
@click.option("--values", is_flag=True, help="Print the values of all tensors.")
@click.option("--exclude", default="", help="Regular expression of tensors not to count.")
def command(checkpoint: str, tensor: str, values: bool, exclude: str) -> None:
    """Print the names, types and shapes of the tensors in a checkpoint, and count the parameters.

    Exit status: 0 if the checkpoint can be read, 1 otherwise.
    """
    from opdock.tools.inspect_checkpoint import print_tensors_in_checkpoint_file

    done = print_tensors_in_checkpoint_file(
        checkpoint, tensor, values, count_exclude_pattern=exclude
    )
    sys.exit(0 if done else 1)
