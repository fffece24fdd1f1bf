"""`opdock saved-model`: what is in a SavedModel, and running it."""

from __future__ import annotations

from opdock.cli._command import Wrong
from opdock.cli._tool import Tool


def _main(arguments: list[str], prog: str) -> None:
    from opdock.tools.saved_model_cli import create_parser

    parser = create_parser(prog=prog)
    args = parser.parse_args(arguments)
    if not hasattr(args, "func"):
        parser.error("too few arguments")
    try:
        args.func(args)
    except RuntimeError as e:  # no meta graph has these tags, or a file is there
        raise Wrong(str(e)) from e


command = Tool(
    "saved-model",
    _main,
    help="Show, run or scan a SavedModel; the arguments are those of TensorFlow's saved_model_cli.",
    example="opdock saved-model show --dir model --all",
)
