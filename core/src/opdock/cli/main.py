"""The command group: finds a subcommand in the module of its name and imports no other."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

import opdock.cli
from opdock.nearest import meant

_NOT_COMMANDS: Final = frozenset({"main"})


class LazyGroup(click.Group):
    """A group whose command "some-name" is the object `command` of `opdock.cli.some_name`.

    The list of commands is the list of modules, and the help of each is its module's docstring, so
    `opdock --help` imports none of them. A module whose name starts with an underscore is no
    command.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all subcommands, sorted."""
        found = [m.name for m in pkgutil.iter_modules(opdock.cli.__path__)]
        names = [n for n in found if not n.startswith("_") and n not in _NOT_COMMANDS]
        return sorted(n.replace("_", "-") for n in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the module of one subcommand."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"opdock.cli.{cmd_name.replace('-', '_')}")
        command = module.command
        if not isinstance(command, click.Command):
            raise TypeError(f"{module.__name__}.command must be a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command; of one that there is not, the nearest is told."""
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            ctx.fail(f"No such command '{args[0]}'{meant(args[0], known)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What a shell offers: commands with their first lines, of which none is imported."""
        names = [n for n in self.list_commands(ctx) if n.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(n, help=_first_line(n)) for n in names), *options]

    def invoke(self, ctx: click.Context) -> Any:
        """Runs a command; Ctrl-C ends it with a line and the status that shells know."""
        from opdock.cli._command import INTERRUPTED
        from opdock.util.interrupts import kept_interrupts

        try:
            with kept_interrupts():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("\nopdock: interrupted", err=True)
            ctx.exit(INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands with the first lines of their modules' docstrings."""
        names = self.list_commands(ctx)
        if names:
            with formatter.section("Commands"):
                formatter.write_dl([(name, _first_line(name)) for name in names])


def _first_line(name: str) -> str:
    spec = importlib.util.find_spec(f"opdock.cli.{name.replace('-', '_')}")
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    text = (ast.get_docstring(tree) or "").partition("\n")[0]
    _, _, said = text.partition("`: ")
    return said.removesuffix(".")


@click.command(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True
)
@click.version_option(package_name="opdock-core", prog_name="opdock")
def main() -> None:
    """Run TensorFlow 1 programs on any device that an installed plugin serves."""


if __name__ == "__main__":
    main()
