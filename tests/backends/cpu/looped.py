"""What tests of generated loops share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import opdock as tf
from opdock_cpu.jit import llvm
from opdock_cpu.jit.looped import Looped
from opdock_cpu.jit.team import spread
from opdock_cpu.jit.translate import core

__all__ = ["assembly", "compiled_for", "given", "source"]


def given(value: Any) -> Any:
    """An array that is no constant, which would be folded."""
    tensor = tf.py_func(lambda: value, [], value.dtype)
    tensor.set_shape(value.shape)
    return tensor


def source(loop: Looped, elements: Sequence[str]) -> str:
    """A loop over arrays of these types, as LLVM's assembly."""
    about = loop._about
    assert about is not None
    pointers = [*(f"{name}.array" for name in about.arrays), "wholes", "reals"]
    text = core(about, [np.dtype(e) for e in elements])
    return text + spread("f", pointers, (len(about.arrays), 0))


def compiled_for(processor: str, text: str) -> str:
    """A module as a processor's own assembly, by LLVM's name of the processor."""
    from llvmlite import binding

    llvm._machine()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(cpu=processor, features="", opt=3, jit=True)
    code: str = machine.emit_assembly(llvm.optimized(text, machine))
    return code


def assembly(loop: Looped, elements: Sequence[str], processor: str) -> str:
    """A loop over arrays of these types as a processor's own assembly."""
    return compiled_for(processor, source(loop, elements))
