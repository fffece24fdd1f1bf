"""Hostile files that coverage guides to code that none has run: `make fuzz ARGS=--guided`.

    python -m tests.hostile.guided FORMAT SECONDS

By atheris, which is libFuzzer for Python: what a format's own changes cannot hit upon, it finds
byte by byte, as it sees which of opdock's branches a file has taken. The files that took new ones
are kept in build/fuzz/FORMAT-guided, so the next run goes on from them; those with a fault of a new
kind lie in build/fuzz/FORMAT-faults, beside what is wrong with them.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["opdock"]):
    import opdock as tf
    from tests.hostile.formats import FORMATS
    from tests.hostile.trial import SECONDS, judge

FOLDER = Path("build/fuzz")
MEGABYTES = 2048


def main() -> None:
    """Reads files until the time is over; a file that ends the process is kept as well."""
    name, seconds = sys.argv[1:]
    kind = FORMATS[name]
    corpus, found = FOLDER / f"{name}-guided", FOLDER / f"{name}-faults"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    tf.logging.set_verbosity(tf.logging.FATAL)
    seen: set[str] = set()
    scratch = tempfile.TemporaryDirectory()
    with atheris.instrument_imports(include=["opdock"]):  # much is imported when it is used
        for data in kind.seeds():
            (corpus / hashlib.sha256(data).hexdigest()).write_bytes(data)
            judge(kind, data, Path(scratch.name))

    def read(data: bytes) -> None:
        wrong = judge(kind, data, Path(scratch.name))
        if wrong is None or wrong[0] in seen:
            return
        seen.add(wrong[0])
        case = found / hashlib.sha256(wrong[0].encode()).hexdigest()[:16]
        case.write_bytes(data)
        case.with_suffix(".txt").write_text("\n".join(wrong))

    def change(data: bytes, limit: int, seed: int) -> bytes:
        """By the format's own changes, where the file is whole enough, or by libFuzzer's."""
        rng = Random(seed)
        if rng.random() < 0.5:
            try:
                return kind.mutate(rng, data)[:limit]
            except Exception:
                return bytes(atheris.Mutate(data, limit))  # they are written for valid files
        return bytes(atheris.Mutate(data, limit))

    settings = [
        f"-max_total_time={seconds}", f"-rss_limit_mb={MEGABYTES}", f"-timeout={4 * SECONDS}",
        "-max_len=65536", f"-artifact_prefix={found}/", "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *settings, str(corpus)], read, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
