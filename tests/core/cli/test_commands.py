"""What all commands have in common: examples that run, JSON, exit statuses, widths, Ctrl-C."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opdock.cli import _screen
from opdock.cli._command import Command
from opdock.cli.main import main
from tests.core.cli import workshop

COMMANDS = dict(workshop.commands())
NO_PROCESS = {"launch", "run", "record"}
"""Those whose program needs a process of its own."""


GRAPH = "--in_graph=graph.pb --out_graph=out.pb --inputs=x"
OTHER = "--input_graph=graph.pb --input_binary --output_graph=out.pb"
MODEL = "--input_meta_graph=model.ckpt.meta --input_checkpoint=model.ckpt --input_binary"
SHOWN = "--graph=classifier.pb --labels=labels.txt --input_layer=x --output_layer=y --input_width=8"
TIMED = "--graph=graph.pb --input_layer=x --output_layer=y"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    workshop.fill(folder)
    done = opdock(folder, *words_of(COMMANDS["record"]))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = tmp_path / "there"
    shutil.copytree(made, there)
    monkeypatch.chdir(there)
    return there


def opdock(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "opdock.cli.main", *words]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)


def words_of(command: Command) -> list[str]:
    first, *words = shlex.split(command.example.partition(" > ")[0])
    assert first == "opdock"
    return words


# ---------------------------------------------------------------- one by one
@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_that_runs(name: str, folder: Path) -> None:
    command = COMMANDS[name]
    said = CliRunner().invoke(main, [*name.split(), "--help"]).output
    assert "Example:" in said and "Exit status:" in said
    assert " ".join(command.example.split()) in " ".join(said.split())
    if name in NO_PROCESS:
        done = opdock(folder, *words_of(command))
        assert done.returncode == 0, done.stderr
    else:
        result = CliRunner().invoke(main, words_of(command), prog_name="opdock")
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", [n for n, c in COMMANDS.items() if c.keys])
def test_json_has_the_keys_that_help_tells(name: str, folder: Path) -> None:
    command = COMMANDS[name]
    words = words_of(command)
    words = [w for w in words if w != "--json"] + ["--json"]
    found = json.loads(CliRunner().invoke(main, words).stdout)
    assert isinstance(found, list) == bool(command.each)
    assert found
    for item in found if command.each else [found]:
        assert list(item) == list(command.keys)


def test_a_folder_stands_for_its_latest_checkpoint(folder: Path) -> None:
    told = [
        CliRunner().invoke(main, ["inspect-checkpoint", place]).stdout
        for place in ("model.ckpt", ".")
    ]
    assert told[0] == told[1] and "w (DT_FLOAT) [4,2]" in told[0]


def test_commands_with_the_option_tell_their_keys() -> None:
    for name, command in COMMANDS.items():
        with click.Context(command, info_name=name) as context:
            options = {o for p in command.get_params(context) for o in p.opts}
        assert ("--json" in options) == bool(command.keys), name
        # What else there is prints a program's words, a script or JSON anyway, or has commands.
        assert command.keys or name in {*NO_PROCESS, "completion", "timeline", "saved-model"}, name


def test_tools_take_their_options_as_other_commands_do(folder: Path) -> None:
    said = CliRunner().invoke(main, ["transform-graph", "--help"], prog_name="opdock").output
    assert said.startswith("Usage: opdock transform-graph [OPTIONS]")
    assert re.search(r"--in_graph TEXT +File of the GraphDef, binary or text. +\[required\]", said)
    assert "\ntransforms:\n" in said and "JSON (an object):" in said
    for words, told in (
        ("--in_grph=a", "there is no option --in_grph; did you mean --in_graph?"),
        ("--in_graph=graph.pb", "required: --out_graph, --transforms"),
        ("--in_graph=graph.pb --out_graph=o.pb --transforms=no", "Transform 'no' not recognized"),
    ):
        done = CliRunner().invoke(main, ["transform-graph", *words.split()], prog_name="opdock")
        assert done.exit_code == 2
        assert done.output.startswith("opdock transform-graph: ") and told in done.output
        assert not (folder / "o.pb").exists()


def test_shells_complete_the_options_of_tools() -> None:
    env = {"COMP_WORDS": "opdock summarize-graph --p", "COMP_CWORD": "2"}
    env |= {"_OPDOCK_COMPLETE": "bash_complete"}
    code = "import sys; from opdock.cli.main import main; main(prog_name='opdock')"
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, env={**os.environ, **env}, capture_output=True, text=True)
    assert done.stdout.split() == ["plain,--print_structure"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("explain none.pb", "'none.pb' does not exist"),
        ("explain train.py", "opdock explain: train.py holds no GraphDef"),
        ("explain graph.pb --fetch z", "'z'"),
        ("inspect-checkpoint none", "none"),
        ("inspect-checkpoint model.ckpt --json --tensor W", "no tensor 'W'; did you mean 'w'?"),
        ("replay-case data.tfrecord", "opdock replay-case: data.tfrecord is no replayable case"),
        ("timeline graph.pb", "opdock timeline: graph.pb is neither a RunMetadata"),
        ("records count none", "NotFoundError: none"),
        ("check none", "opdock check: "),
        ("summarize-graph --in_graph=none.pb", "opdock summarize-graph: none.pb"),
        ("saved-model show --dir none --all", "opdock saved-model: "),
        ("convert-checkpoint a b", "ends with .safetensors"),
        (
            f"transform-graph {GRAPH} --outputs=q --transforms=round_weights",
            "--outputs: the graph has",
        ),
        (f"transform-graph {GRAPH} --outputs=y --transforms=a(", "--transforms: Looking for param"),
        (
            f"strip-unused {OTHER} --input_node_names=x --output_node_names=q",
            "--output_node_names: ",
        ),
        (f"strip-unused {OTHER} --input_node_names=X --output_node_names=y", "did you mean 'x'?"),
        (f"freeze-graph {MODEL} --output_node_names=q", "--output_node_names: q is not in graph"),
        (f"label-image {SHOWN} --image=labels.txt --input_height=8", "--image: "),
        (
            f"label-image {SHOWN} --image=images/red/0.png",
            "--input_height, --input_width: images of",
        ),
        (
            f"benchmark-model {TIMED} --input_layer_shape=1,5 --input_layer_type=float",
            "_shape: 'x'",
        ),
        (f"benchmark-model {TIMED} --input_layer_shape=1,4 --input_layer_type=int32", "_type: 'x'"),
        ("devcies", "No such command 'devcies'; did you mean 'devices'?"),
        ("devices --jsn", "Did you mean --json?"),
    ],
)
def test_wrong_use_ends_with_2_and_a_line(line: str, told: str, folder: Path) -> None:
    done = CliRunner().invoke(main, line.split(), prog_name="opdock")
    assert done.exit_code == 2, done.output
    assert told in done.output or told.replace("--json", "'--json'") in done.output
    assert "Traceback" not in done.output
    assert not (folder / "out.pb").exists()


# ---------------------------------------------------------------- terminals
@pytest.fixture(scope="module")
def piped(made: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return driven(made, tmp_path_factory.mktemp("piped"), None)


def driven(made: Path, scratch: Path, width: int | None) -> str:
    """What all commands print, to a terminal of so many columns or into a pipe."""
    folder = scratch / "there"
    shutil.copytree(made, folder)
    lines = [words_of(c) for n, c in COMMANDS.items() if n not in NO_PROCESS]
    lines = [[w for w in line if w != "--json"] for line in lines]
    command = [sys.executable, "-m", "tests.core.cli.workshop", str(folder), json.dumps(lines)]
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    env |= {"TERM": "xterm", "PYTHONPATH": str(Path(__file__).parents[3])}
    if width is None:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return done.stdout
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    with subprocess.Popen(command, env=env, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        said = bytearray()
        while True:
            try:
                said += os.read(master, 1 << 16)
            except OSError:  # the other side is closed
                break
        os.close(master)
    assert process.returncode == 0, said.decode()
    return said.decode()


def plain(said: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said).replace("\r", "")


def told_words(said: str) -> set[str]:
    """The words without digits: counts and times change from run to run."""
    words = {w for w in plain(said).split() if not re.search(r"\d", w)}
    return {w for w in words if "/there" not in w}


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_terminal_breaks_a_word(
    width: int, made: Path, tmp_path: Path, piped: str, request: pytest.FixtureRequest
) -> None:
    said = driven(made, tmp_path, width)
    ended = re.findall(r"=== ended with (\S+)", plain(said))
    assert ended == ["0"] * len(COMMANDS.keys() - NO_PROCESS), plain(said)
    broken = told_words(said) - told_words(piped)
    # Names of a table's columns stand before the cells where there is no room for the table.
    assert {w.rstrip(":") for w in broken} <= told_words(piped) | {"state", "type"}, broken
    tables = plain(said).partition("=== devices")[2].partition("=== ")[0]
    assert all(
        len(line.rstrip()) <= width or " " not in line.strip() for line in tables.split("\n")
    )


def test_nothing_is_coloured_or_drawn_where_nobody_looks(piped: str) -> None:
    assert "\x1b" not in piped
    assert "/device:CPU:0" in piped


def test_what_is_being_done_goes_away_when_something_is_printed() -> None:
    """It is shown on the terminal alone: what is printed meanwhile goes where it should."""
    script = """if True:
        import sys, threading
        from opdock.cli import _screen

        _screen._PATIENCE = 0.0
        with _screen.working("reading"):
            for thread in threading.enumerate():
                if isinstance(thread, threading.Timer):
                    thread.join()  # it is shown now
            print("found", file=sys.stderr)
            print("printed", flush=True)
            sys.stdout.buffer.write(b"bytes")
        print("after")
    """
    master, slave = pty.openpty()
    line, env = [sys.executable, "-c", script], {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        printed, _ = process.communicate()
    said = os.read(master, 1 << 16).decode()
    os.close(master)
    assert process.returncode == 0, said
    assert printed == b"printed\nbytesafter\n"
    before, _, after = said.partition("found")
    assert "reading ..." in before
    assert after.strip() == ""


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TERM", "xterm")
        console = _screen._console(stderr=False)
    assert console.no_color


# ---------------------------------------------------------------- the table
@pytest.mark.parametrize(
    ("room", "widths"),
    [(100, [3, 11]), (14, [3, 11]), (9, [3, 6]), (8, [3, 5]), (7, None)],
)
def test_widths_of_columns(room: int, widths: list[int] | None) -> None:
    assert _screen.column_widths([["a", "bcd"], ["words", "two of them", "x"]], room) == widths


def test_cells_of_many_lines_and_columns_of_none(capsys: pytest.CaptureFixture[str]) -> None:
    _screen.Screen().table(("a", "b", "n"), [("x", "", "1"), ("y\nz", "", "20")], "all", ("n",))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == ["all", "a   n", "x   1", "y  20", "z"]


# ---------------------------------------------------------------- interrupts and shells
def test_ctrl_c_ends_with_130_and_a_line(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    line = [sys.executable, "-m", "opdock.cli.main", "records", "count", str(pipe)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        with pipe.open("wb", buffering=0):  # waits until the command reads
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            said = process.stderr.read()
    assert (process.returncode, said.strip()) == (130, "opdock: interrupted")
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


def test_an_interrupt_that_python_ignores_comes_again(tmp_path: Path) -> None:
    script = """if True:
        import signal, sys
        from opdock.cli.main import main

        class Finalized:
            def __del__(self):
                signal.raise_signal(signal.SIGINT)

        path = sys.argv.pop()
        real_import = main.get_command

        def get_command(ctx, name):
            found = real_import(ctx, name)
            Finalized()
            return found

        main.get_command = get_command
        main(["records", "count", path])
    """
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)  # without this end of it, reading would come to an end
    try:
        line = [sys.executable, "-c", script, str(pipe)]
        done = subprocess.run(line, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(held)
    assert (done.returncode, done.stderr.strip()) == (130, "opdock: interrupted")


def test_a_pipe_has_no_index(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    try:
        done = CliRunner().invoke(main, ["records", "index", str(pipe)])
    finally:
        os.close(held)
    assert done.exit_code == 2 and "it has no index" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    assert "_OPDOCK_COMPLETE" in script
    words = {"bash": "opdock dev", "zsh": "opdock dev", "fish": "opdock dev"}[shell]
    env = {
        "_OPDOCK_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD":
        "dev" if shell == "fish" else "1",
    }  # fmt: skip
    offered = CliRunner().invoke(main, [], prog_name="opdock", env=env).stdout
    assert "devices" in offered and "doctor" not in offered


def test_bash_completes(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    script = tmp_path / "complete.bash"
    script.write_text(CliRunner().invoke(main, ["completion", "bash"]).stdout)
    name = tmp_path / "opdock"
    name.write_text(
        f"#!{sys.executable}\nfrom opdock.cli.main import main\nmain(prog_name='opdock')\n"
    )
    name.chmod(0o755)
    asked = (
        f"source {script}; COMP_WORDS=(opdock devices --js); COMP_CWORD=2; "
        "_opdock_completion opdock; echo ${COMPREPLY[@]}"
    )
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", asked], env=env, capture_output=True, text=True, check=True
    )
    assert "--json" in done.stdout, done.stderr
