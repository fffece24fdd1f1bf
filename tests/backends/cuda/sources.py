"""Kernel sources: what the conformance samples of ops make the backend compile.

    python sources.py FILE [OP ...]    writes them as JSON, a list of [text, [option, ...]]; of all
                                       ops where none is named

Kernels do nothing here; only their text matters, so wrong results are of no interest.
"""

from __future__ import annotations

import contextlib
import io
import json
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
_ROOM = 6 << 30


def collect(ops: list[str]) -> list[tuple[str, list[str]]]:
    """The different (text, options), in the order in which they were first wanted."""
    from with_standin import install

    install()
    from cupy import raw
    from cupy.cuda import memory

    from opdock.cli.main import main

    raw.recorded = []
    memory.FILL = 0  # what kernels do not compute may become a size further on
    resource.setrlimit(resource.RLIMIT_AS, (_ROOM, _ROOM))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        chosen = [word for op in ops for word in ("--op", op)]
        main(["conformance", "--device", "cuda:0", "--level", "L2", *chosen])
    found = dict.fromkeys((text, options) for text, options in raw.recorded)
    return [(text, list(options)) for text, options in found]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(collect(sys.argv[2:])), encoding="utf-8")
