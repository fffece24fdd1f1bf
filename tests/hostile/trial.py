"""One process that reads hostile files until one of them breaks it.

    python -m tests.hostile.trial FORMAT,... SEED FIRST COUNT STATE FOUND

It has a gigabyte more memory than what it needs for valid files, and five seconds of processor time
a case. STATE holds the number of the case at work, so whoever started the process knows where it
died; it goes on behind what is wrong. Each new kind of fault is a line of JSON in FOUND.
"""

from __future__ import annotations

import dis
import faulthandler
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from types import TracebackType

import opdock as tf
from tests.hostile.formats import FORMATS, Format

MEMORY = 1 << 30
SECONDS = 5
STUCK = 300
"""Wall seconds without any progress: so long nothing takes that waits for no other thread."""

_SOURCE = os.path.dirname(tf.__file__)
_GOOD = (ValueError, TypeError, OSError, NotImplementedError, KeyError)
_RAISE = dis.opmap["RAISE_VARARGS"]


def fault(error: BaseException) -> str | None:
    """What is wrong with an error as the answer to a bad file; None if it is a good answer.

    Good are TensorFlow's errors but Internal and Unknown, and ValueError, TypeError, OSError,
    NotImplementedError and TensorFlow's KeyError for a name that the graph does not have, with
    words that opdock's code chose: where Python or NumPy stumbled over
    what was not checked, the innermost frame does not stand on a `raise`.
    """
    if isinstance(error, (tf.errors.InternalError, tf.errors.UnknownError)):
        return "an error from inside"
    if isinstance(error, tf.errors.OpError):
        return None if error.message else "no words"
    if not isinstance(error, _GOOD):
        return "an untyped error"
    if not str(error):
        return "no words"
    last = _innermost(error)
    if last is None or last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE:
        return None
    return "an error that nobody raised"


def _innermost(error: BaseException) -> TracebackType | None:
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at


def place(error: BaseException) -> str:
    """Where in opdock an error arose, which is what one fault has and another has not."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "opdock" in f.filename] or list(frames)
    at = own[-1]
    return f"{type(error).__name__} at {at.filename.rpartition('src/')[2]}:{at.name}"


def judge(kind: Format, data: bytes, folder: Path) -> tuple[str, str] | None:
    """Reads a file; (where, what) is wrong, None if nothing is."""
    try:
        kind.read(data, folder)
    except Exception as e:
        wrong = fault(e)
        if wrong is None:
            return None
        text = "".join(traceback.format_exception(e, limit=-12))[-4000:]
        if isinstance(e, (tf.errors.InternalError, tf.errors.UnknownError)):
            return f"{type(e).__name__}: {e.message.partition(' on ')[0][:80]}", text
        return place(e), f"{wrong}\n{text}"
    return None


def limit_memory(more: int = MEMORY) -> None:
    """Leaves this process so much more memory than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def limit_time() -> None:
    """Gives this process so many seconds from now on."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + SECONDS + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def main() -> None:
    """Runs the cases."""
    names, seed, first, count, state, found = sys.argv[1:]
    kinds = [FORMATS[name] for name in names.split(",")]
    warnings.simplefilter("ignore")
    tf.logging.set_verbosity(tf.logging.FATAL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seen: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as folder,
        open(state, "r+b", buffering=0) as at,
        open(found, "a") as out,
        open(found + ".stack", "w") as stack,
    ):
        faulthandler.enable(stack)
        for kind in kinds:
            for data in kind.seeds():
                judge(kind, data, Path(folder))
        gc.collect()
        gc.freeze()  # what has been imported need not be looked through after every few cases
        faulthandler.register(signal.SIGXCPU, stack, chain=True)
        limit_memory()
        for number in range(int(first), int(first) + int(count)):
            if number % 64 == 0:
                faulthandler.dump_traceback_later(STUCK, exit=True, file=stack)
                gc.collect()
            os.pwrite(at.fileno(), number.to_bytes(8, "little"), 0)
            for kind in kinds:
                limit_time()
                wrong = judge(kind, kind.case(int(seed), number), Path(folder))
                if wrong is not None and wrong[0] not in seen:
                    seen.add(wrong[0])
                    line = {"case": number, "where": wrong[0], "what": wrong[1]}
                    out.write(json.dumps(line) + "\n")
                    out.flush()
        os.pwrite(at.fileno(), (number + 1).to_bytes(8, "little"), 0)
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
