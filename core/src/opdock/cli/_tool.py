"""Commands that are TensorFlow's tools: all arguments go to the tool."""

from __future__ import annotations

import importlib
import sys

import click

from opdock import errors

_SETTINGS = {"ignore_unknown_options": True, "help_option_names": []}


def tool(name: str, module: str) -> click.Command:
    """The command of a tool.

    What the user has given and cannot be, a file, a name or an option, ends it with exit status 2
    and one line that says so.

    Args:
        name: the command's name.
        module: the module of `opdock.tools` whose `main(arguments, prog)` returns a status.
    """

    @click.command(name, context_settings=_SETTINGS)
    @click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    def command(arguments: tuple[str, ...]) -> None:
        main = importlib.import_module(f"opdock.tools.{module}").main
        try:
            sys.exit(main(list(arguments), prog=f"opdock {name}"))
        except errors.OpError as e:
            told = e.message
        except KeyError as e:
            told = str(e.args[0])
        except (ValueError, TypeError, OSError, AssertionError) as e:
            told = str(e)
        click.echo(f"opdock {name}: {told}", err=True)
        sys.exit(2)

    return command
