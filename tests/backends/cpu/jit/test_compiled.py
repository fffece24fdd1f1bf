"""Compilation beside the program: what is loaded when, and what a caller never waits for."""

from __future__ import annotations

import ctypes
import os
import platform
import queue
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opdock_cpu.jit import compiled, llvm

Arrives = Callable[[compiled.Function], bool]
HEAD = """
import sys
import numpy as np
import opdock as tf
"""


def output(code: str, **environment: str) -> str:
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(code)], text=True, check=True,
        stdout=subprocess.PIPE, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The source of a function that nobody has compiled yet, with a cache of its own."""
    monkeypatch.setenv("OPDOCK_CACHE", str(tmp_path))
    monkeypatch.delenv("OPDOCK_JIT", raising=False)
    yield f"; {tmp_path}\ndefine void @NAME(ptr %x, i64 %n) {{\n  ret void\n}}\n"


@pytest.fixture
def arrives(monkeypatch: pytest.MonkeyPatch) -> Arrives:
    """Waits for the worker to be done with a function; whether it has an address then."""
    change, compile_ = threading.Condition(), compiled.Function.compile

    def told(function: compiled.Function) -> None:
        compile_(function)
        with change:
            change.notify_all()

    def wait(function: compiled.Function) -> bool:
        with change:
            change.wait_for(lambda: function.address is not None or bool(function.failure))
        return function.address is not None

    monkeypatch.setattr(compiled.Function, "compile", told)
    return wait


def test_a_program_without_generated_code_loads_no_compiler() -> None:
    code = """
        x = tf.placeholder(tf.float32, [])
        y = x + x
        with tf.Session() as session:
            assert session.run(y, {x: 1.5}) == 3
        print(*({"llvmlite.binding", "pycparser"} & sys.modules.keys()))
    """
    assert output(code) == ""


@pytest.mark.parametrize("folder", ["", "kept"])
def test_the_first_step_is_right_before_and_after_the_code_is_there(
    folder: str, tmp_path: Path
) -> None:
    code = """
        import contextlib, threading
        from opdock_cpu.jit import compiled, llvm
        done, compile_ = threading.Semaphore(0), compiled.Function.compile
        compiled.Function.compile = lambda self: (compile_(self), done.release())
        x = tf.placeholder(tf.float32, [5000])
        y = tf.nn.relu(x * 2.0 + 1.0) * x
        value = np.linspace(-1, 1, 5000, dtype=np.float32)
        with tf.Session() as session:
            # Without a folder the compiler is held up until the first step is over.
            with contextlib.nullcontext() if FOLDER else llvm._lock:
                first = session.run(y, {x: value})
                late = [f for f in compiled._known.values() if f.address is None]
            for _ in late:
                done.acquire()
            assert all(f.address is not None for f in compiled._known.values())
            np.testing.assert_allclose(session.run(y, {x: value}), first, rtol=1e-6)
        np.testing.assert_allclose(first, np.maximum(value * 2 + 1, 0) * value, rtol=1e-6)
        print(bool(late))
    """.replace("FOLDER", repr(bool(folder)))
    cache = folder and str(tmp_path / folder)
    environment = {"OPDOCK_CACHE": cache, "OPDOCK_JIT": ""}
    output(code, **environment)
    # From disk it is there for the first step.
    assert output(code, **environment) == str(not folder)


def test_a_caller_does_not_wait_for_a_compilation(written: str, arrives: Arrives) -> None:
    with llvm._lock:  # as long as the worker is inside LLVM: a caller that waits would hang
        function = compiled.request(lambda name: written.replace("@NAME", f"@{name}"))
        assert function.address is None
    assert arrives(function)


def test_the_same_source_is_compiled_once(written: str, arrives: Arrives) -> None:
    first, second = (
        compiled.request(lambda name: written.replace("@NAME", f"@{name}")) for _ in range(2)
    )
    assert first is second
    assert arrives(first)


def test_code_that_is_there_stays(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A thread may be inside it while the worker, or a caller that did not wait, compiles it again.
    function = compiled.Function(written.replace("@NAME(", "@twice("), "twice")
    compile_ir = llvm.compile_ir

    def slower(source: str, name: str) -> llvm.Code:
        monkeypatch.setattr(llvm, "compile_ir", compile_ir)
        function.compile()  # as another thread does meanwhile
        first.append(function.address)
        return compile_ir(source, name)

    first: list[int | None] = []
    monkeypatch.setattr(llvm, "compile_ir", slower)
    function.compile()
    function.compile()
    assert first == [function.address]
    assert first != [None]


def test_code_may_outlive_the_names_of_its_module(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The end of a program takes the module's names first, and then what still held the code.
    code = llvm.compile_ir(written.replace("@NAME(", "@late("), "late")
    assert code.address
    monkeypatch.setattr(llvm, "sys", None)
    code.__del__()


def test_what_nobody_wants_any_more_is_not_compiled(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs come and go faster than code is compiled: the requests of the gone ones go too."""
    monkeypatch.setattr(compiled, "_queue", queue.SimpleQueue())
    monkeypatch.setattr(compiled, "_start", lambda: None)  # nobody takes what stands in the queue

    def ask(words: str) -> compiled.Function:
        return compiled.request(lambda name: written.replace("@NAME", f"@{name}") + words)

    for i in range(3):
        ask(f"; {i}\n")
    wanted = ask("; wanted\n")
    assert compiled._take() is wanted
    assert compiled._queue.empty()


def test_without_room_for_a_thread_code_comes_with_the_next_request(
    written: str, arrives: Arrives, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(words: str) -> compiled.Function:
        return compiled.request(lambda name: written.replace("@NAME", f"@{name}") + words)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(compiled, "_worker", None)
    monkeypatch.setattr(compiled, "_queue", queue.SimpleQueue())
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        first = ask("; first\n")
    assert first.address is None
    second = ask("; second\n")
    assert arrives(first)
    assert arrives(second)


def test_a_failure_is_told_and_harms_no_later_request(written: str, arrives: Arrives) -> None:
    broken = compiled.request(lambda name: written.replace("@NAME", f"@{name}") + "nonsense")
    good = compiled.request(lambda name: written.replace("@NAME", f"@{name}"))
    assert arrives(good)
    assert broken.address is None
    assert "nonsense" in broken.failure


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the kernel describes no processor")
def test_what_changes_from_run_to_run_is_no_part_of_the_key() -> None:
    described = llvm._processor()
    assert ("flags" in described) or ("Features" in described)
    assert "MHz" not in described
    assert described == llvm._processor()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the names are those of x86-64")
@pytest.mark.parametrize(("processor", "half"), [("x86-64-v2", False), ("x86-64-v3", True)])
def test_code_for_a_processor_that_is_named(processor: str, half: bool, tmp_path: Path) -> None:
    """What the named one lacks is not in the code: without conversions NumPy serves float16."""
    code = """
        from opdock_cpu.jit import compiled
        for kind in (np.float32, np.float16):
            compiled._known.clear()
            x = tf.placeholder(kind, [5000])
            y = tf.nn.relu(x * 2.0 + 1.0) * x
            value = np.linspace(-1, 1, 5000).astype(kind)
            with tf.Session() as session:
                got = session.run(y, {x: value})
                known = list(compiled._known.values())  # as long as the program is kept
            np.testing.assert_allclose(got, np.maximum(value * 2 + 1, 0) * value, 2e-3, 1e-3)
            (told,) = {(f.address is not None, "half precision" in f.failure) for f in known}
            print(*told)
    """
    words = output(code, OPDOCK_CACHE=str(tmp_path), OPDOCK_JIT="sync", OPDOCK_JIT_CPU=processor)
    assert words.split("\n") == ["True False", f"{half} {not half}"]


def test_calls_with_many_arguments() -> None:
    """More than cffi would read from a declaration."""
    pointer = compiled.ffi().from_buffer(bytearray(8))
    seen = []

    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 800, ctypes.c_int64)
    def function(*args: int) -> None:
        seen.append((len(args), args[-1]))

    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    compiled.caller(800)(address)(*[pointer] * 800, 7)
    assert seen == [(801, 7)]


def test_a_word_that_is_none_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for word, asked in (("OFF", "off"), ("0", "off"), (" sync ", "sync"), ("1", ""), ("", "")):
        monkeypatch.setenv("OPDOCK_JIT", word)
        assert llvm.asked() == asked
    assert not caplog.records
    monkeypatch.setenv("OPDOCK_JIT", "synk")
    assert [llvm.asked(), llvm.asked()] == ["", ""]
    (record,) = caplog.records
    assert record.getMessage() == (
        "OPDOCK_JIT=synk is neither off nor sync: code is generated as without it"
    )
