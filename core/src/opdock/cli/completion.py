"""`opdock completion`: what a shell runs to complete opdock's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from opdock.cli._command import Command

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command, example="opdock completion bash > opdock-complete.bash")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    Put what it prints where the shell reads it: `source <(opdock completion bash)` in ~/.bashrc,
    the same with zsh in ~/.zshrc behind compinit, or
    `opdock completion fish > ~/.config/fish/completions/opdock.fish`.
    """
    from opdock.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(main, {}, "opdock", "_OPDOCK_COMPLETE").source())
