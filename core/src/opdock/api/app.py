"""`tf.app`: runs a program's `main` after its flags are parsed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from opdock import flags

__all__ = ["flags", "run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Parses the flags, calls `main` with the arguments that are no flags, and exits.

    Args:
        main: takes the list [program, argument, ...]; `main` of the script by default.
        argv: the command line, `sys.argv` by default.

    Raises:
        SystemExit: always, with what `main` returned; with status 1 for a bad flag.
    """
    from absl import app

    def parse(arguments: list[str]) -> list[str]:
        try:
            return list(flags.FLAGS(arguments, known_only=True))
        except flags.Error as e:
            sys.stderr.write(f"FATAL Flags parsing error:\n  {e}\n")
            sys.stderr.write("Pass --helpshort or --helpfull to see help on flags.\n")
            sys.exit(1)

    arguments = list(sys.argv if argv is None else argv)
    app.run(main or sys.modules["__main__"].main, argv=arguments, flags_parser=parse)
