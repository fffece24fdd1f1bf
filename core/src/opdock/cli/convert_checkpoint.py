"""`opdock convert-checkpoint`: a checkpoint as a .safetensors file, and back."""

from __future__ import annotations

import click

from opdock.cli._command import Command, emit, json_option
from opdock.cli._screen import working


@click.command(
    "convert-checkpoint", cls=Command,
    example="opdock convert-checkpoint model.ckpt model.safetensors",
    keys={"target": "what was written", "tensors": "the names of the tensors in it"},
)  # fmt: skip
@click.argument("source")
@click.argument("target")
@json_option
def command(source: str, target: str, json_output: bool) -> None:
    """Convert between TensorFlow's checkpoints and .safetensors files.

    One of SOURCE and TARGET is a file that ends with .safetensors, the other a checkpoint's prefix.
    """
    from opdock.io.safetensors_files import checkpoint_to_safetensors, safetensors_to_checkpoint

    files = [name.endswith(".safetensors") for name in (source, target)]
    if files == [True, True] or not any(files):
        raise click.UsageError("one of SOURCE and TARGET, not both, ends with .safetensors")
    convert = safetensors_to_checkpoint if files[0] else checkpoint_to_safetensors
    with working(f"writing {target}"):
        names = convert(source, target)
    if json_output:
        emit({"target": target, "tensors": list(names)})
        return
    click.echo(f"{len(names)} tensors: {target}")
