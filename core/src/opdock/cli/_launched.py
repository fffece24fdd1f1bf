"""What `opdock launch` starts for each task: `opdock run`, as long as the launcher is there."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PARENT_DIED: Final = 1  # PR_SET_PDEATHSIG


def main() -> None:
    """Runs a program: `python -m opdock.cli._launched LAUNCHER script [arguments]`."""
    launcher, *line = sys.argv[1:]
    if sys.platform == "linux":
        # The kernel ends this process when the launcher ends, however it does.
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)
        if os.getppid() != int(launcher):
            sys.exit(1)
    from opdock.cli.run import command

    command(line)


if __name__ == "__main__":
    main()
