"""Commands that are TensorFlow's tools: all arguments go to the tool."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from typing import Any, Final

import click

from opdock.cli._command import Command, Wrong
from opdock.cli._screen import working

Main = Callable[[list[str], str], int | None]
Parser = Callable[[str], Any]
_HELP = ("-h", "--help")
CHANGE: Final = {
    "output": "the file that was written",
    "nodes_before": "how many nodes the graph had",
    "nodes": "how many it has",
    "bytes_before": "the graph's size before",
    "bytes": "its size now",
    "removed": "how many nodes of each op went",
    "added": "how many came",
}
"""What the tools that change a graph tell of it with `--json`."""


class Tool(Command):
    """A command whose options are those of one of TensorFlow's tools.

    What the user has given and cannot be, a file, a name or an option, ends it with exit status 2
    and one line that says so.

    Args:
        main: takes the arguments and the name of the program; gives an exit status.
        parser: makes the tool's parser of the name of the program, for help and completion; the
            tool says itself what it takes where there is none.
    """

    def __init__(self, name: str, main: Main, parser: Parser | None = None, **options: Any) -> None:
        super().__init__(name, callback=self._run, **options)
        self._main, self._parser = main, parser

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The tool's options."""
        if self._parser is None:
            return super().get_params(ctx)
        made = [_option(action) for action in self._parser(ctx.command_path).options]
        return [option for option in made if option.name != "help"] + super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Leaves the line to the tool, but for the wish for help."""
        if self._parser is not None and any(word in _HELP for word in args):
            if not ctx.resilient_parsing:
                click.echo(ctx.get_help(), color=ctx.color)
                ctx.exit()
        ctx.params["arguments"] = tuple(args)
        return []

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """What stands behind the command's name."""
        return ["[OPTIONS]"] if self._parser is not None else ["[OPTIONS]", "[ARGUMENTS]..."]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes what the tool's own help ends with, before what all commands end with."""
        told = None if self._parser is None else self._parser(ctx.command_path).epilog
        if told:
            formatter.write(f"\n{told}\n")
        super().format_epilog(ctx, formatter)

    def _run(self, arguments: tuple[str, ...]) -> None:
        prog = click.get_current_context().command_path
        try:
            with working(f"{self.name} is at work"):
                status = self._main(list(arguments), prog)
        except KeyError as e:
            raise Wrong(str(e.args[0])) from e
        except (ValueError, TypeError, OSError, AssertionError) as e:
            raise Wrong(str(e)) from e
        except SystemExit as e:
            if not e.code and arguments[:1] in [(word,) for word in _HELP]:
                click.echo(f"\nExample:\n  {self.example}\n\nExit status:\n  {self.status}")
            raise
        sys.exit(status or 0)


def _option(action: argparse.Action) -> click.Option:
    """An option of a tool as commands have theirs."""
    text = action.help or ""
    kind: Any = action.type if action.type in (int, float) else None
    if action.choices is not None:
        kind = click.Choice([str(choice) for choice in action.choices])
    return click.Option(
        list(action.option_strings), help=text and f"{text[:1].upper()}{text[1:].rstrip('.')}.",
        required=action.required, is_flag=action.nargs == 0, type=kind,
        metavar=action.metavar if isinstance(action.metavar, str) else None, expose_value=False,
    )  # fmt: skip


def tool(name: str, module: str, **options: Any) -> Tool:
    """The command of a tool.

    Args:
        name: the command's name.
        module: the module of `opdock.tools` whose `main(arguments, prog)` gives an exit status, and
            whose `create_parser(prog)` makes its parser.
        options: those of `Command`.
    """

    def found() -> Any:
        return importlib.import_module(f"opdock.tools.{module}")

    def main(arguments: list[str], prog: str) -> int | None:
        status: int | None = found().main(arguments, prog=prog)
        return status

    return Tool(name, main, lambda prog: found().create_parser(prog), **options)
