"""Commands that are TensorFlow's tools: all arguments go to the tool."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import click

from opdock.cli._command import Command, Wrong

_SETTINGS = {"ignore_unknown_options": True, "help_option_names": []}

Main = Callable[[list[str], str], int | None]


class Tool(Command):
    """A command whose options are those of one of TensorFlow's tools.

    What the user has given and cannot be, a file, a name or an option, ends it with exit status 2
    and one line that says so.

    Args:
        main: takes the arguments and the name of the program; gives an exit status.
    """

    def __init__(self, name: str, main: Main, **options: Any) -> None:
        argument = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
        super().__init__(
            name, params=[argument], context_settings=_SETTINGS, callback=self._run, **options
        )
        self._main = main

    def _run(self, arguments: tuple[str, ...]) -> None:
        prog = click.get_current_context().command_path
        try:
            status = self._main(list(arguments), prog)
        except KeyError as e:
            raise Wrong(str(e.args[0])) from e
        except (ValueError, TypeError, OSError, AssertionError) as e:
            raise Wrong(str(e)) from e
        except SystemExit as e:
            if not e.code and arguments[:1] in (("-h",), ("--help",)):
                click.echo(f"\nExample:\n  {self.example}\n\nExit status:\n  {self.status}")
            raise
        sys.exit(status or 0)


def tool(name: str, module: str, **options: Any) -> Tool:
    """The command of a tool.

    Args:
        name: the command's name.
        module: the module of `opdock.tools` whose `main(arguments, prog)` gives an exit status.
        options: those of `Command`.
    """

    def main(arguments: list[str], prog: str) -> int | None:
        status: int | None = importlib.import_module(f"opdock.tools.{module}").main(
            arguments, prog=prog
        )
        return status

    return Tool(name, main, **options)
