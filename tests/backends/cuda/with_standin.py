"""Runs opdock's command line on a GPU that is not there: `python with_standin.py conformance ...`.

The stand-in for CuPy runs the CUDA text of every kernel on the host.
"""

from __future__ import annotations

import sys
from pathlib import Path

STANDIN = Path(__file__).with_name("standin")


def install() -> None:
    """Puts the stand-in before any CuPy, and a GPU into the driver's answer."""
    if str(STANDIN) not in sys.path:
        sys.path.insert(0, str(STANDIN))
    from opdock_cuda import probe
    from opdock_cuda.driver import Gpu

    probe.gpus = lambda: [Gpu("stand-in", "pci:0000:00:00.0", 1 << 30)]


if __name__ == "__main__":
    install()
    from opdock.cli.main import main

    sys.exit(main())
