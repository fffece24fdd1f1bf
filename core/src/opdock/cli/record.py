"""`opdock record`: runs a program, and keeps steps of it in a file that `opdock replay` runs."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path

import click

from opdock.cli.run import ProgramCommand, run_program


@click.command(
    "record", cls=ProgramCommand, options_metavar="[OPTIONS]",
    example="opdock record --steps 3 -o steps.npz train.py --steps 5",
    status="that of the program; 2 if there is no such program.",
)  # fmt: skip
@click.option("--steps", default=3, show_default=True, type=click.IntRange(1), help="How many.")
@click.option(
    "-o", "--output", default="steps.npz", show_default=True,
    type=click.Path(dir_okay=False, path_type=Path), help="The file.",
)  # fmt: skip
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(steps: int, output: Path, module: str | None, arguments: tuple[str, ...]) -> None:
    """Run a program as `opdock run` does, and keep its first steps in a file.

    A step is a call of `Session.run` that does more than to initialize variables. The file has its
    graph, what was fed and what came from datasets, random numbers and Python functions, the
    variables before it, its results, and where each op ran. It is written with each step; when
    there are so many, the program runs on.
    """
    from opdock.runtime import watcher
    from opdock.runtime.inspect.recording import Recorder

    recorder = Recorder(steps, output)

    def tell() -> None:
        told = f"{len(recorder.steps)} steps in {output}" if recorder.steps else "no step was run"
        click.echo(f"opdock record: {told}", err=True)

    atexit.register(tell)
    with watcher.watching(recorder):
        run_program(module, arguments, legacy_to=sys.stderr)
