"""`opdock convert-checkpoint`: a checkpoint as a .safetensors file, and back."""

from __future__ import annotations

import sys

import click


@click.command("convert-checkpoint")
@click.argument("source")
@click.argument("target")
def command(source: str, target: str) -> None:
    """Convert between TensorFlow's checkpoints and .safetensors files.

    One of SOURCE and TARGET is a file that ends with .safetensors, the other a checkpoint's prefix.

    Exit status: 0 if it was converted, 1 if it cannot be, 2 if the names are not as above.
    """
    from opdock import errors
    from opdock.io.safetensors_files import checkpoint_to_safetensors, safetensors_to_checkpoint

    files = [name.endswith(".safetensors") for name in (source, target)]
    if files == [True, True] or not any(files):
        raise click.UsageError("one of SOURCE and TARGET, not both, ends with .safetensors")
    convert = safetensors_to_checkpoint if files[0] else checkpoint_to_safetensors
    try:
        names = convert(source, target)
    except errors.OpError as e:
        click.echo(f"opdock convert-checkpoint: {e.message}", err=True)
        sys.exit(1)
    click.echo(f"{len(names)} tensors: {target}")
