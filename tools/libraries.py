"""Runs the own test suites of libraries of TensorFlow 1's years on opdock, as they were published.

    python tools/libraries.py [--only NAME]... [--write docs/reference/libraries.md] [--check]

`make libraries` calls it. The libraries go into an environment of their own, build/libraries, with
opdock's folders editable and NumPy 1.26, the last that has what their tests take for granted. Each
suite runs under `opdock run -m pytest`, with the tests that its wheel or source archive brings. It
prints how many passed and failed, and why: failures with one message are one line. The page has the
last report of every suite, and keeps what it says of those that were not run here; `--check` fails
where fewer tests pass than it says.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import venv
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

from library_suites import SUITES, Suite

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build/libraries"
MEMBERS = ("core", "backends/ckernels", "backends/cpu[jit,onednn,regex]")
# What the suites need beside the libraries, which come without the old versions they ask for.
COMMON = ("numpy==1.26.4", "scipy", "h5py", "pyyaml", "pytest", "pytest-timeout", "pillow")
PAGE = ROOT / "docs/reference/libraries.md"
PROGRAMS = ROOT / "tools/library_programs"
AGAIN = 9  # times that a test of a library that races is run again; one in three fails at first
NOT_INSTALLED = 3  # the exit status where pip fails


# What a message means; the first that matches counts.
REASONS = (
    (r"Name or service not known|URLError|ConnectionError", "downloads data"),
    (r"No module named|Failed to import", "asks for a library that is not installed"),
    (r"Unable to synchronously open file", "h5py 3 opens files to read, h5py 2 to append"),
    (
        r"numpy\._ArrayFunctionDispatcher|truth value of an array|only integers, slices",
        "NumPy or h5py has changed",
    ),
    (r"assert b'\w+' == '|KeyError: b'|'b'\w+'' does not|Component b'", "h5py 3 gives bytes"),
    (r"'TensorNetwork'", "tests what it has removed"),
    (r"'SGD' object has no attribute 'minimize'", "asks for an optimizer of tf.keras"),
    (r"random\.set_seed", "asks for TensorFlow 2"),
    (r"Jax not installed", "asks for a library that is not installed"),
    (r"Bbox\.from_bounds", "Matplotlib has changed"),
    (r"derived from Warning, not <class 'NoneType'>", "pytest has changed"),
    (r"tolerance rtol=1e-07, atol=1e-05", "NumPy's sort does not keep the order of equals now"),
    (r"tolerance rtol=1e-07, atol=0", "compares the last bit of float32"),
    (r"tolerance rtol=1e-06, atol=1e-06", "compares nearly the last bit of float32"),
    (r"adds over the cores of a TPU", "TPUs"),
    (r"side of a Switch that is not taken", "fetches from the side of a tf.cond not taken"),
    (r"argument 2 is longer|BoundedTensorSpec\(.*invalid t", "eager execution"),
    (
        r"object-based checkpoint is saved|'RestoredFunction'|Graph object at .* == ",
        "functions of TensorFlow 2",
    ),
    (r"Unable to open file", "its package lacks the file"),
    (r"failed on setup", "pytest takes one of its helpers for a test"),
    (r"Some Python objects were not bound", "checkpoints say it in other words"),
    (r"TensorList cannot be saved", "checkpoints have no lists of tensors"),
    (
        r"symbolic tensor.*SparseTensor|pyfunc_\d+ is double|has no attribute 'apply'",
        "mended since",
    ),
    (r"No such file or directory", "its package lacks the file"),
    (r"Expected cond_op|TensorArrayReadV3' refers", "conditionals and loops are one node here"),
    (r"'NoneType' object has no attribute", "compares with Theano or CNTK"),
    (
        r"!= 9\.801016",
        "TensorFlow 2 draws other numbers: it counts random operations, 1.15 all nodes",
    ),
    (r"Timeout|TimeoutError", "too slow here"),
    (
        r"Lists differ: \[4, 1\]|\[\] has length of 0|AssertionError: 0 != 2",
        "sets a protected name of tf.keras, `_layers`, which tf_keras has dropped",
    ),
    (
        r"compatible with supplied shape|assertion failed: \[\[|!= 1$|!= 0$|'inception_v3'",
        "mended since",
    ),
    (
        r"must have rank 0|Shapes are \[\?,1\] and \[\?,3\]|len is not well defined",
        "written for an earlier TensorFlow 1",
    ),
    (r"InceptionV4", "its first half was too slow here"),
    (r"Categorical'> to Tensor", "tf_keras calls a network to save it; this gives a distribution"),
    (
        r"Arrays are not equal in testSingleDeterministicPassAsDatasetWithNumStepsBatchSize",
        "interleaves as many streams as there are processors, here two",
    ),
    (
        r"Arrays are not equal in test_pad_or_clip_nd_tensor",
        "a size that TensorFlow does not know while it builds the graph is known here",
    ),
    (r"references untracked object", "functions of TensorFlow 2"),
    (r"AssertionError: Exception raised", "downloads data"),
    (r"saved_model' has no attribute 'save'", "functions of TensorFlow 2"),
    (r"json\.encoder", "Python has changed"),
    (r"eager execution|not allowed in Graph execution", "eager execution"),
    (r"there are no TPUs", "TPUs"),
    (r"does not (cover|map)|module '.*' has no attribute", "a name that opdock does not have"),
)
# What is said whatever the arrays are: the name of the test is told with it.
BARE = "AssertionError: Arrays are not equal"


def python() -> Path:
    """The interpreter of the environment."""
    return HOME / "venv/bin/python"


def pip(*words: str) -> None:
    """Runs pip there."""
    subprocess.run(
        [str(python()), "-m", "pip", "--disable-pip-version-check", "--quiet", *words], check=True
    )


def set_up(suites: list[Suite]) -> None:
    """Makes the environment, the first time, and adds what these suites need."""
    done = HOME / "done"
    there = done.read_text(encoding="utf-8").splitlines() if done.exists() else []
    if there[: len(COMMON)] != [*COMMON]:
        venv.create(HOME / "venv", with_pip=True, clear=True)
        pip("install", "hatchling", "editables", "setuptools", "wheel")
        members = [word for member in MEMBERS for word in ("-e", str(ROOT / member))]
        pip("install", "--no-build-isolation", *COMMON, *members)
        there = [*COMMON]
    for suite in suites:
        if needs := [need for need in suite.needs if need not in there]:
            pip("install", *COMMON[:1], *needs)  # NumPy stays as it is
        if bare := [need for need in suite.bare if need not in there]:
            pip("install", "--no-deps", "--no-build-isolation", *bare)
        needs += bare
        if suite.requirement not in there:
            where = ("--target", str(apart(suite))) if suite.apart else ()
            wanted = (suite.requirement, *suite.beside)
            pip("install", "--no-deps", "--no-build-isolation", *where, *wanted)
            if suite.from_source:
                unpack(suite)
            needs.append(suite.requirement)
        there += needs
        done.write_text("\n".join(there), encoding="utf-8")


def apart(suite: Suite) -> Path:
    """The folder of a library of which the others use another version."""
    return HOME / "apart" / suite.name


def unpack(suite: Suite) -> None:
    """Unpacks a library's source archive for its tests."""
    target = HOME / "src" / suite.name
    target.mkdir(parents=True, exist_ok=True)
    pip(
        "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
        "--dest", str(target), suite.requirement,
    )  # fmt: skip
    for archive in target.glob("*.tar.gz"):
        with tarfile.open(archive) as file:
            file.extractall(target, filter="data")


def folder(suite: Suite) -> Path:
    """Where a suite's paths begin."""
    if suite.program:
        return PROGRAMS
    if suite.from_source:
        return next(p for p in (HOME / "src" / suite.name).iterdir() if p.is_dir())
    if suite.apart:
        return apart(suite)
    return next((HOME / "venv/lib").glob("python*/site-packages"))


def tests_of(suite: Suite) -> list[str]:
    """The files and folders that pytest is given.

    Several libraries put a folder `tests` beside their packages, the same one for all: of it those
    files count that the library's own record has.
    """
    given = [*suite.tests]
    if suite.from_source or suite.program or suite.apart or "tests" not in given:
        return given
    name, _, version = suite.requirement.partition("==")
    record = f"{name.replace('-', '_')}-{version}.dist-info/RECORD"
    files = (folder(suite) / record).read_text(encoding="utf-8").splitlines()
    own = [line.partition(",")[0] for line in files]
    given.remove("tests")
    tests = [path for path in own if re.fullmatch(r"tests/(.*/)?test_\w+\.py", path)]
    return given + [path for path in tests if path not in suite.left_out]


def report_of(suite: Suite) -> Path:
    """Where pytest's report of a suite is."""
    return HOME / f"{suite.name}.xml"


def run(suite: Suite, *, nets: bool) -> None:
    """Runs a suite, and leaves pytest's report."""
    report = report_of(suite)
    left_out = [p for p in suite.left_out if not (nets and p.endswith("nets"))]
    words = [
        str(HOME / "venv/bin/opdock"), "run", "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-p", "no:warnings",
        *(f"-p{plugin}" for plugin in ("parsed_flags", *suite.plugins)),
        "--continue-on-collection-errors", "--timeout", "120",
        f"--junitxml={report}", *tests_of(suite),
        *(f"--ignore={p}" for p in left_out),
        *(["--reruns", str(AGAIN)] if suite.races else []),
    ]  # fmt: skip
    paths = [PROGRAMS, *([apart(suite)] if suite.apart else [])]
    env = {
        **os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg",
        # Steps that run before their code is compiled round otherwise: a busy machine has more.
        "OPDOCK_JIT": "sync",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }  # fmt: skip
    with (HOME / f"{suite.name}.log").open("w", encoding="utf-8") as log:
        subprocess.run(
            words, cwd=folder(suite), env=env, stdout=log, stderr=log, timeout=7200, check=False
        )


def counted(suite: Suite) -> tuple[Counter[str], Counter[str]]:
    """Numbers of passed, failed and skipped tests of its last report; messages of failures."""
    report = ET.parse(report_of(suite)).getroot()  # noqa: S314 - pytest has written it
    numbers: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    # Each run of a test that was run again has an entry; what counts is the last one.
    cases = {(e.get("classname"), e.get("name")): e for e in report.iter("testcase")}
    for case in cases.values():
        bad = [e for e in case if e.tag in ("failure", "error")]
        skipped = any(e.tag == "skipped" for e in case)
        numbers["failed" if bad else "skipped" if skipped else "passed"] += 1
        if bad:
            message = first_line(bad[0])
            if message == BARE:
                message += f" in {case.get('name')}"
            messages[re.sub(r"0x[0-9a-f]+|/\S*/", "…", message)[:160]] += 1
    return numbers, messages


def first_line(failure: ET.Element) -> str:
    """The first line of what a test raised; where a file could not be imported, of why."""
    message = (failure.get("message") or "").strip()
    if message == "collection failure":
        found = re.search(r"^E +(.*)$", failure.text or "", re.MULTILINE)
        message = found[1] if found else message
    said = [line.strip() for line in message.splitlines() if line.strip()]
    # NumPy's and absl's assertions say what they found on a line of its own.
    bare = len(said) > 1 and re.fullmatch(r"\w*(Error|Exception):?", said[0])
    return " ".join(said[: 2 if bare else 1]) or "?"


def reason(message: str) -> str:
    """What a message means, as far as that is known."""
    return next((why for pattern, why in REASONS if re.search(pattern, message)), "not known")


def row(suite: Suite, numbers: Counter[str]) -> str:
    """A suite's row of the table."""
    left = "; ".join(f"`{path}`: {why}" for path, why in suite.left_out.items())
    if suite.program:
        left = f"it carries no tests: `tools/library_programs/{suite.tests[0]}`"
    return (
        f"| {suite.requirement} | {numbers['passed']} | {numbers['failed']} | "
        f"{numbers['skipped']} | {left} |"
    )


def section(suite: Suite, messages: Counter[str]) -> str:
    """What the page says of a suite's failures; nothing if there are none."""
    if not messages:
        return ""
    lines = [
        f"## What fails in {suite.name}",
        "",
        "| tests | message | why |",
        "| --: | --- | --- |",
    ]
    lines += [
        f"| {n} | `{message.replace('|', '/').replace('`', '')}` | {reason(message)} |"
        for message, n in messages.most_common()
    ]
    return "\n".join(lines)


def page(found: dict[str, tuple[Counter[str], Counter[str]]], before: str) -> str:
    """The page of what passes and what does not.

    Args:
        found: the reports, by the names of suites.
        before: the page as it was, for what it says of the others.
    """
    rows, sections = [], []
    for suite in SUITES:
        if suite.name in found:
            numbers, messages = found[suite.name]
            rows.append(row(suite, numbers))
            sections.append(section(suite, messages))
            continue
        name, title = re.escape(suite.requirement), re.escape(f"## What fails in {suite.name}")
        rows += re.findall(rf"^\| {name} \|.*$", before, re.MULTILINE)
        kept = re.findall(rf"^{title}\n(?:\n|\|.*\n)*", before, re.MULTILINE)
        sections += [_ROW.sub(_explained, section) for section in kept]
    lines = [
        "<!-- written by tools/libraries.py: `make libraries` -->",
        "# Libraries of TensorFlow 1's years",
        "",
        "The own tests of these libraries, as they were published, under `opdock run -m pytest`.",
        "",
        "| library | passed | failed | skipped by itself | left out |",
        "| --- | --: | --: | --: | --- |",
        *rows,
    ]
    races = [
        f"Tests of {suite.name} that fail are run again, up to {AGAIN} times: {suite.races}."
        for suite in SUITES
        if suite.races
    ]
    parts = ["\n".join(lines), *races, *(s.strip() for s in sections if s)]
    return "\n\n".join(parts) + "\n"


_ROW = re.compile(r"^\| +(\d+) \| `(.*)` \|.*$", re.MULTILINE)


def _explained(found: re.Match[str]) -> str:
    """A row of a report that is not at hand, with the reason that is known of it today."""
    return f"| {found[1]} | `{found[2]}` | {reason(found[2])} |"


def recorded(name: str) -> int:
    """How many tests of a suite pass, as the page says; 0 where it has no such row."""
    found = re.search(rf"^\| {re.escape(name)} \| (\d+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    return int(found[1]) if found else 0


def main() -> None:
    """Runs the suites that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=[s.name for s in SUITES])
    parser.add_argument("--nets", action="store_true", help="tf_slim's networks as well")
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument(
        "--check", action="store_true", help="fail if fewer pass than the page says"
    )
    given = parser.parse_args()
    suites = [s for s in SUITES if not given.only or s.name in given.only]
    try:
        set_up(suites)
    except subprocess.CalledProcessError as e:
        print(f"the libraries cannot be installed here: {e}", file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    fewer = []
    for suite in suites:
        run(suite, nets=given.nets)
        numbers, messages = counted(suite)
        print(f"{suite.requirement}: {dict(numbers)}")
        for message, n in messages.most_common():
            print(f"  {n:5}  {message}  {reason(message)}")
        if numbers["passed"] < recorded(suite.requirement):
            fewer.append(suite.requirement)
    if given.write:
        reports = {s.name: counted(s) for s in SUITES if report_of(s).exists()}
        before = given.write.read_text(encoding="utf-8") if given.write.exists() else ""
        given.write.write_text(page(reports, before), encoding="utf-8")
    if given.check and fewer:
        sys.exit(f"fewer tests pass than {PAGE.name} says: {', '.join(fewer)}")


if __name__ == "__main__":
    main()
