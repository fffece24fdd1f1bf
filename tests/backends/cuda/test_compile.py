"""Every kernel source compiles for every architecture that is supported, by NVRTC."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from opdock_cuda.dialect import CUDA_C, OPTIONS
from tests.backends.cuda import nvrtc
from tests.conformance import ops_of

HERE = Path(__file__).parent
_AT_ONCE = 40


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Gives (text, options) of the kernels of some ops, collected where the stand-in is seen."""

    @functools.cache
    def collect(*ops):
        out = tmp_path_factory.mktemp("sources") / "sources.json"
        subprocess.run([sys.executable, HERE / "sources.py", out, *ops], check=True)
        return json.loads(out.read_text(encoding="utf-8"))

    return collect


@pytest.fixture(scope="module")
def compiler():
    return nvrtc.library()


@pytest.mark.slow
def test_sources_of_some_ops_compile(sources, compiler):
    """Of a few ops; `make prove` compiles all of them, for every architecture."""
    some = sources(*ops_of("backends/opencl/conformance.json")[::24])
    assert len(some) > 15, "the samples reach only a part of the kernels"
    _check(some, compiler, "sm_80")


@pytest.mark.prove
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_every_source_compiles(sources, compiler, arch):
    every = sources()
    assert len(every) > 500, "the samples reach only a part of the kernels"
    _check(every, compiler, arch)


def _check(sources, compiler, arch):
    groups = [sources[i : i + _AT_ONCE] for i in range(0, len(sources), _AT_ONCE)]

    def compile_group(group):
        options = [f"-arch={arch}", *OPTIONS, "-w"]
        code, log = nvrtc.compile_text(compiler, nvrtc.merged(group), options)
        return "" if code else _culprit(compiler, group, arch) or f"{arch}: {log[:2000]}"

    wrong = [text for text in map(compile_group, groups) if text]
    assert not wrong, "\n".join(wrong[:5])


def _culprit(compiler, group, arch):
    """The first source of a group that does not compile by itself, and why."""
    for text, options in group:
        code, log = nvrtc.compile_text(compiler, text, [f"-arch={arch}", *options, "-w"])
        if not code:
            return f"{arch} {options}:\n{log[:1500]}\n{text[len(CUDA_C.prelude) :][:1500]}"
    return ""


def test_a_source_as_it_is(compiler):
    """Alone a kernel keeps its C name, by which CuPy finds it."""
    body = "od_store_half(x, 0, 2 * od_load_half(x, 0));"
    text = f"{CUDA_C.prelude}KERNEL void twice(GLOBAL half* x) {{ {body} }}"
    code, log = nvrtc.compile_text(compiler, text, ["-arch=sm_80", *OPTIONS])
    assert b"twice" in code and b"_Z5twice" not in code, log


def test_what_does_not_compile_is_told(compiler):
    text = CUDA_C.prelude + "KERNEL void f() { nonsense; }"
    code, log = nvrtc.compile_text(compiler, text, ["-arch=sm_90", *OPTIONS])
    assert code == b"" and "nonsense" in log
