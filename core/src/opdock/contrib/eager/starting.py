"""`tfe.run`: `tf.app.run` for programs whose operations run as they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opdock.api import app
from opdock.eager.modes import enable_eager_execution

__all__ = ["run"]


def run(main: Callable[[list[str]], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Enables eager execution, parses the flags, calls `main`, and exits; see `tf.app.run`.

    Args:
        main: takes the list [program, argument, ...]; `main` of the script by default.
        argv: the command line, `sys.argv` by default.
    """
    enable_eager_execution()
    app.run(main, argv)
