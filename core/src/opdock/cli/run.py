"""`opdock run`: runs an unmodified TensorFlow 1 program on opdock."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click

from opdock.cli import _program
from opdock.cli._command import Command, Wrong
from opdock.mapping.finder import be_found_as_tensorflow
from opdock.util.switches import switched_on


class ProgramCommand(Command):
    """Takes options up to the script or `-m module`; all behind it is the program's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Splits the line where the program begins."""
        valued = {
            name
            for p in self.params
            if isinstance(p, click.Option) and not p.is_flag
            for name in p.opts
        }
        end = 0
        while end < len(args) and args[end].startswith("-") and args[end] not in ("-", "--"):
            end += 2 if args[end] in valued else 1
            if args[end - 1].startswith("-m") or args[end - 2 : end - 1] == ["-m"]:
                break
        return super().parse_args(ctx, [*args[:end], "--", *args[end:]])


@click.command(
    "run", cls=ProgramCommand, options_metavar="[OPTIONS]", example="opdock run train.py --steps 3",
    status="that of the program; 2 if there is no such program.",
)  # fmt: skip
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.option(
    "--no-legacy",
    is_flag=True,
    help="Do not put back what Python, NumPy and other libraries have removed since 2019.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(module: str | None, no_legacy: bool, arguments: tuple[str, ...]) -> None:
    """Run a TensorFlow 1 program, unmodified: `opdock run train.py --steps 100`.

    In its process `import tensorflow` means opdock, for the libraries that it imports as well. It
    sees the arguments, the path and `__main__` that Python would give it, and it ends with the
    traceback and the exit status that it would end with there. Names that Python, NumPy and
    other libraries have removed since 2019 are put back for it; which of them were used, and where,
    is said at the end on stderr.
    """
    run_program(module, arguments, legacy_to=None if no_legacy else sys.stderr)


def run_program(module: str | None, arguments: tuple[str, ...], legacy_to: TextIO | None) -> None:
    """Runs a program in the place of this one.

    Args:
        module: the module, or None for the script that the first argument names.
        arguments: the program's.
        legacy_to: where to say at the end what was put back of removed names; None puts back none.
    """
    if module is None and not arguments:
        raise click.UsageError("name a script, or a module with -m")
    be_found_as_tensorflow()
    _program.share_with_spawned()
    if legacy_to is None or switched_on("OPDOCK_NO_LEGACY"):
        os.environ["OPDOCK_NO_LEGACY"] = "1"
    else:
        from opdock import legacy

        legacy.put_back(tell=legacy_to)
    try:
        if module is not None:
            _program.run_module(module, list(arguments))
        else:
            _program.run_script(arguments[0], list(arguments[1:]))
    except _program.CannotRunError as e:
        raise Wrong(str(e)) from None
