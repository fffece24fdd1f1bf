"""`opdock saved-model`: what is in a SavedModel, and running it."""

from __future__ import annotations

import click

_SETTINGS = {"ignore_unknown_options": True, "help_option_names": []}


@click.command("saved-model", context_settings=_SETTINGS)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Show, run or scan a SavedModel; the arguments are those of TensorFlow's saved_model_cli."""
    from opdock.tools.saved_model_cli import create_parser

    parser = create_parser(prog="opdock saved-model")
    args = parser.parse_args(arguments)
    if not hasattr(args, "func"):
        parser.error("too few arguments")
    args.func(args)
