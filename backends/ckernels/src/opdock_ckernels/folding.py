"""Reductions: any axes, folded in passes so that no work item adds up a long row alone.

A pass gives each (output, part) to one work item, so that neighbouring items read neighbouring
elements where that counts. A further pass folds the parts. The order is fixed: results repeat.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from opdock.plugin import DType, as_dtype, codegen, dtypes
from opdock_ckernels.dialect import TYPES
from opdock_ckernels.made import once
from opdock_ckernels.protocols import Array
from opdock_ckernels.strided import strides_of

__all__ = ["FOLDS", "fold", "parts_of", "start_of", "ways_of"]

_CHUNK = 1024
_LANES = 64
_SUMS = 16
"""Sums that a work item of a CPU keeps, so that no addition waits for the one before."""
_GROUP_OF_CPU = 8
"""Such work items of a group: a group is what a thread takes."""
_STRETCH = (
    "i64 size = (count + parts - 1) / parts, from = part * size, "
    "end = from + size < count ? from + size : count;"
)
"""The part of a row that a work item of a CPU folds, in C."""

FOLDS = {
    "sum": ("0", "acc + v"),
    "prod": ("1", "acc * v"),
    "max": ("LOWEST", "(v > acc || v != v ? v : acc)"),
    "min": ("HIGHEST", "(v < acc || v != v ? v : acc)"),
    "all": ("1", "acc && v"),
    "any": ("0", "acc || v"),
}
"""Name -> the fold of nothing, and one step."""

_NARROW = (dtypes.float16, dtypes.bfloat16)


def parts_of(count: int) -> int:
    """Into how many parts a row of `count` elements is split."""
    if count <= 2 * _CHUNK:
        return 1
    parts = min(-(-count // _CHUNK // _LANES + 1) * _LANES, count)
    return max(_LANES, min(parts, 4096))


def start_of(dialect: codegen.Dialect, how: str, dtype: DType) -> str:
    """What a fold of elements of a type starts with, in C."""
    low, high = limits(dialect, dtype)
    return FOLDS[how][0].replace("LOWEST", low).replace("HIGHEST", high)


def ways_of(device: Any, across: bool) -> tuple[str, str]:
    """How work items share the elements: statements that name `o` and `part`, and the loop.

    Args:
        device: on a CPU a part is a stretch, else neighbouring items read neighbours.
        across: whether neighbouring elements belong to different outputs.
    """
    split = "o = i % n, part = i / n" if across else "o = i / parts, part = i % parts"
    if device.is_cpu:
        return f"i64 {split}; {_STRETCH}", "for (i64 j = from; j < end; ++j)"
    return f"i64 {split};", "for (i64 j = part; j < count; j += parts)"


def limits(dialect: codegen.Dialect, dtype: DType) -> tuple[str, str]:
    """The fold of nothing for a maximum and a minimum, in C."""
    if dtype.is_floating:
        return "-INFINITY", "INFINITY"
    if dtype is dtypes.bool:
        return "0", "1"
    return tuple(dialect.number(dtype, int(v)) for v in (dtype.min, dtype.max))  # type: ignore[return-value]


@once
def _kernel(
    device: Any,
    how: str,
    first: str,
    last: str,
    source: DType,
    target: DType,
    kept: int,
    gone: int,
    across: bool,
    together: str,
) -> Any:
    dialect: codegen.Dialect = device.dialect
    ways = ways_of(device, across)
    start, step = start_of(dialect, how, source), FOLDS[how][1]
    acc = dialect.computed(source if source not in _NARROW else dtypes.float32)
    sizes = "".join(f", i64 k{d}, i64 ks{d}" for d in range(kept))
    sizes += "".join(f", i64 r{d}, i64 rs{d}" for d in range(gone))

    def walk(index: str, letter: str, count: int) -> str:
        lines = [f"i64 rest_{letter} = {index};"]
        for d in range(count - 1, 0, -1):
            lines.append(
                f"p += (rest_{letter} % {letter}{d}) * {letter}s{d}; rest_{letter} /= {letter}{d};"
            )
        lines.append(f"p += rest_{letter} * {letter}s0;")
        return " ".join(lines)

    element = f"{acc} x = {dialect.load(source, 'x_', 'p')}; {acc} v = {first}; acc = {step};"
    place = f"  {{ i64 p = 0; {walk('o', 'k', kept)} base = p; }}\n"

    def store(o: str) -> str:
        return dialect.store(target, "y_", f"(({o}) * parts + part)", f"({last})")

    # Sums of their own for neighbours, which the compiler makes vectors of.
    sums = f"  {acc} sums[{_SUMS}];\n  for (int k = 0; k < {_SUMS}; ++k) sums[k] = {start};\n"
    each = f"{{ {acc} acc = sums[k]; {element} sums[k] = acc; }}"
    if together == "columns":
        body = (
            f"  i64 i = GLOBAL_ID(0), base, width = k{kept - 1};\n"
            f"  i64 blocks = (width + {_SUMS - 1}) / {_SUMS}, part = i % parts, o = i / parts;\n"
            f"  if (i >= n / width * blocks * parts) return;\n"
            f"  int here = width - o % blocks * {_SUMS} < {_SUMS} ? width % {_SUMS} : {_SUMS};\n"
            f"  o = o / blocks * width + o % blocks * {_SUMS};\n"
            f"  {_STRETCH}\n{place}{sums}"
            f"  for (i64 j = from; j < end; ++j) {{\n    i64 p = base + j * rs0;\n"
            f"    if (here == {_SUMS}) for (int k = 0; k < {_SUMS}; ++k, ++p) {each}\n"
            f"    else for (int k = 0; k < here; ++k, ++p) {each}\n  }}\n"
            f"  for (int k = 0; k < here; ++k) {{ {acc} total = sums[k]; {store('o + k')} }}\n"
        )
    else:
        loop = (
            f"  {acc} acc = {start};\n"
            f"  {ways[1]} {{ i64 p = base; {walk('j', 'r', gone)} {element} }}\n"
        )
        if together == "rows":
            loop = (
                f"{sums}  i64 j = from;\n"
                f"  for (; j + {_SUMS} <= end; j += {_SUMS})\n"
                f"    for (int k = 0; k < {_SUMS}; ++k) {{ i64 p = base + j + k; {each} }}\n"
                f"  {acc} acc = {start};\n"
                f"  for (; j < end; ++j) {{ i64 p = base + j; {element} }}\n"
                f"  for (int k = 0; k < {_SUMS}; ++k) {{ {acc} v = sums[k]; acc = {step}; }}\n"
            )
        body = (
            f"  i64 i = GLOBAL_ID(0), base;\n  if (i >= n * parts) return;\n  {ways[0]}\n"
            f"{place}{loop}  {acc} total = acc;\n  {store('o')}\n"
        )
    head = codegen.helpers(dialect, body)
    return device.kernel(
        f"{head}\nKERNEL void fold(GLOBAL const {TYPES[source.name]}* x_, "
        f"GLOBAL {TYPES[target.name]}* y_, i64 n, i64 count, i64 parts, i64 whole{sizes}) "
        f"{{\n{body}}}\n",
        "fold",
    )


def _together(
    device: Any, kept: Sequence[tuple[int, int]], folded: Sequence[tuple[int, int]]
) -> str:
    """Which neighbours a work item of a CPU folds side by side: of a row, of columns, or none."""
    if not device.is_cpu or len(folded) > 1:
        return ""
    if folded[0][1] == 1:
        return "rows"
    return "columns" if kept[-1][1] == 1 and kept[-1][0] >= _SUMS else ""


def _groups(
    shape: Sequence[int], strides: Sequence[int], axes: Sequence[int]
) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for a in axes:
        n, s = shape[a], strides[a]
        if n == 1:
            continue
        if out and out[-1][1] == s * n:
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return out or [(1, 1)]


def fold(
    device: Any, how: str, x: Array, axes: Sequence[int], keep: bool = False, *,
    first: str = "x", last: str = "total", whole: int | None = None, dtype: DType | None = None,
    into: Array | None = None,
) -> Array:  # fmt: skip
    """Folds an array along axes.

    Args:
        device: the open device.
        how: a name of `FOLDS`.
        x: the array.
        axes: non-negative axes; none leaves every element by itself.
        keep: whether folded dimensions stay, with size 1.
        first: what becomes of an element `x` before it is folded, in C.
        last: the result in terms of `total` and the number of elements `whole`, in C.
        whole: the number of elements, where `x` already holds folds of parts.
        dtype: the result's type, where it is not that of `x`.
        into: where the result goes; None for a new array.
    """
    gone = set(axes)
    shape = x.shape
    result = tuple(1 if a in gone else n for a, n in enumerate(shape) if keep or a not in gone)
    strides, source = strides_of(shape), as_dtype(x.dtype)
    wide = dtypes.float32 if source in _NARROW else source
    kept = _groups(shape, strides, [a for a in range(len(shape)) if a not in gone])
    folded = _groups(shape, strides, sorted(gone))
    count = math.prod(shape[a] for a in gone)
    whole = count if whole is None else whole
    outputs, parts = math.prod(result), parts_of(count)
    final = parts == 1
    wanted = dtype or source
    target = wanted if final else wide
    together, items = _together(device, kept, folded), outputs * parts
    if together == "columns":
        items = outputs // kept[-1][0] * -(-kept[-1][0] // _SUMS) * parts
    kernel = _kernel(
        device, how, first, last if final else "total", source, target, len(kept), len(folded),
        bool(shape) and (len(shape) - 1) not in gone, together,
    )  # fmt: skip
    dims = [np.int64(v) for pair in (*kept, *folded) for v in pair]
    out = into if final else None
    if out is None:
        out = device.allocate(result if final else (outputs, parts), target.np)
    numbers = [np.int64(v) for v in (outputs, count, parts, whole)]
    group = _GROUP_OF_CPU if together else 0
    device.launch(kernel, items, x, out, *numbers, *dims, group=group)
    if final:
        return out
    done: Array = device.allocate(result, wanted.np) if into is None else into
    kernel = _kernel(device, how, "x", last, wide, wanted, 1, 1, False, "")
    numbers = [np.int64(v) for v in (outputs, parts, 1, whole)]
    dims = [np.int64(v) for v in (outputs, parts, parts, 1)]
    device.launch(kernel, outputs, out, done, *numbers, *dims)
    return done
