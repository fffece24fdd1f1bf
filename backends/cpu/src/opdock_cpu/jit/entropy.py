"""Softmax cross entropies, loss and gradient: generated passes over a row that stays in cache.

The gradient is mostly multiplied by one number a row, such as 1/n of a mean. Fused, that takes no
further pass over memory.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from opdock.plugin import DType, FusionPattern, KernelTable, NodeSig, P, checks, dtypes, note
from opdock_cpu.crew import Loop
from opdock_cpu.jit import llvm
from opdock_cpu.jit.compiled import Function, caller, ffi, request
from opdock_cpu.jit.mathematics import definition, number
from opdock_cpu.jit.plan import Code
from opdock_cpu.jit.team import chunk, divided
from opdock_cpu.kernels import xent as numpy_kernels
from opdock_cpu.threads import threads

__all__ = ["patterns", "table"]

table = KernelTable()
_FLOATS: Final = frozenset({dtypes.float32, dtypes.float64})
_SMALL: Final = 1 << 12
_CHUNK: Final = 1 << 15
"""Logits of a chunk: two are worth a second thread."""
_CHUNKS: Final = 64
Array = np.ndarray[Any, Any]

# K: float or double; S: its suffix; W: the integer type of class numbers.
_MODULE = """
define internal void @row(ptr noalias %x, ptr noalias %labels, ptr noalias %loss,
                          ptr noalias %back, ptr noalias %gains, i64 %n)
    "prefer-vector-width"="512" nounwind {
entry:
  br label %top
top:
  %i = phi i64 [0, %entry], [%i1, %top]
  %m = phi K [-INF, %entry], [%m1, %top]
  %xp = getelementptr K, ptr %x, i64 %i
  %xv = load K, ptr %xp
  %m1 = call reassoc K @llvm.maximum.S(K %m, K %xv)
  %i1 = add i64 %i, 1
  %imore = icmp slt i64 %i1, %n
  br i1 %imore, label %top, label %sum
sum:
  %j = phi i64 [0, %top], [%j1, %sum]
  %s = phi K [ZERO, %top], [%s1, %sum]
  SUM_PHIS
  %yp = getelementptr K, ptr %x, i64 %j
  %yv = load K, ptr %yp
  %d = fsub K %yv, %m1
  %e = call K @od_exp_K(K %d)
  %s1 = fadd reassoc K %s, %e
  %bp = getelementptr K, ptr %back, i64 %j
  store K %e, ptr %bp
  SUM_STEPS
  %j1 = add i64 %j, 1
  %jmore = icmp slt i64 %j1, %n
  br i1 %jmore, label %sum, label %scale
scale:
  %lse = call K @od_log_K(K %s1)
  %inverse = fdiv K ONE, %s1
  %gain = GAIN
  HIT
  br label %each
each:
  %k = phi i64 [0, %scale], [%k1, %each]
  %cp = getelementptr K, ptr %back, i64 %k
  %cv = load K, ptr %cp
  %p = fmul K %cv, %inverse
  EACH
  %g = fmul K %q, %gain
  store K %g, ptr %cp
  %k1 = add i64 %k, 1
  %kmore = icmp slt i64 %k1, %n
  br i1 %kmore, label %each, label %end
end:
  END
  store K %value, ptr %loss
  ret void
}
define internal void @rows(ptr %args, i64 %from, i64 %to) nounwind {
entry:
  %p0 = load ptr, ptr %args
  %a1 = getelementptr ptr, ptr %args, i64 1
  %p1 = load ptr, ptr %a1
  %a2 = getelementptr ptr, ptr %args, i64 2
  %p2 = load ptr, ptr %a2
  %a3 = getelementptr ptr, ptr %args, i64 3
  %p3 = load ptr, ptr %a3
  %a4 = getelementptr ptr, ptr %args, i64 4
  %p4 = load ptr, ptr %a4
  %a5 = getelementptr ptr, ptr %args, i64 5
  %sizes = load ptr, ptr %a5
  %np = getelementptr i64, ptr %sizes, i64 1
  %n = load i64, ptr %np
  %some = icmp slt i64 %from, %to
  br i1 %some, label %row, label %end
row:
  %r = phi i64 [%from, %entry], [%r1, %row]
  %at = mul i64 %r, %n
  %x = getelementptr K, ptr %p0, i64 %at
  %labels = getelementptr L, ptr %p1, i64 LABEL_AT
  %loss = getelementptr K, ptr %p2, i64 %r
  %back = getelementptr K, ptr %p3, i64 %at
  %gains = getelementptr K, ptr %p4, i64 %r
  call void @row(ptr %x, ptr %labels, ptr %loss, ptr %back, ptr %gains, i64 %n)
  %r1 = add i64 %r, 1
  %more = icmp slt i64 %r1, %to
  br i1 %more, label %row, label %end
end:
  ret void
}
define internal void @share(ptr %args, i64 %i, i64 %shares) nounwind {
  %a5 = getelementptr ptr, ptr %args, i64 5
  %sizes = load ptr, ptr %a5
  %rows = load i64, ptr %sizes
  %i1 = add i64 %i, 1
  %f0 = mul i64 %rows, %i
  %from = sdiv i64 %f0, %shares
  %f1 = mul i64 %rows, %i1
  %to = sdiv i64 %f1, %shares
  call void @rows(ptr %args, i64 %from, i64 %to)
  ret void
}
"""
_POINTERS: Final = ("x", "labels", "loss", "back", "gains", "sizes")
_DENSE = {
    "SUM_PHIS": "%w = phi K [ZERO, %top], [%w1, %sum]\n  %c = phi K [ZERO, %top], [%c1, %sum]",
    # As in TF, a logit of -inf spoils the loss though the class's label is 0.
    "SUM_STEPS": """%lp = getelementptr K, ptr %labels, i64 %j
  %lv = load K, ptr %lp
  %cost = fmul K %lv, %d
  %c1 = fadd reassoc K %c, %cost
  %w1 = fadd reassoc K %w, %lv""",
    "EACH": """%gp = getelementptr K, ptr %labels, i64 %k
  %gv = load K, ptr %gp
  %q = fsub K %p, %gv""",
    "HIT": "",
    "END": "%whole = fmul K %w1, %lse\n  %value = fsub K %whole, %c1",
    "LABEL_AT": "%at",
    "L": "K",
}
_SPARSE = {
    "SUM_PHIS": "",
    "SUM_STEPS": "",
    "EACH": "%q = fadd K %p, -0.0",
    "HIT": """%class = load W, ptr %labels
  %l = sext W %class to i64
  %hit = getelementptr K, ptr %back, i64 %l
  %hv = load K, ptr %hit
  %hp = fmul K %hv, %inverse
  %h1 = fsub K %hp, ONE
  %h2 = fmul K %h1, %gain""",
    "END": """store K %h2, ptr %hit
  %mine = getelementptr K, ptr %x, i64 %l
  %mv = load K, ptr %mine
  %shift = fsub K %mv, %m1
  %value = fsub K %lse, %shift""",
    "LABEL_AT": "%r",
    "L": "W",
}


@functools.cache
def _entry() -> str:
    """The function that is called."""
    code = Code()
    divided(code, [f"%{p}" for p in _POINTERS])
    code.add("ret void")
    passed = ", ".join(f"ptr %{p}" for p in _POINTERS)
    return chunk(len(_POINTERS)) + code.function(f"define void @NAME({passed}, i64 %call) nounwind")


def _source(dtype: DType, index: DType | None, scaled: bool) -> str:
    """The module, but for its entry point's name."""
    kind, suffix = ("float", "f32") if dtype is dtypes.float32 else ("double", "f64")
    text = _MODULE
    for word, code in (_SPARSE if index is not None else _DENSE).items():
        text = _word(text, word, code)
    text = _word(text, "GAIN", "load K, ptr %gains" if scaled else "fadd K ONE, -0.0")
    text = text.replace("maximum.S", f"maximum.{suffix}")
    for function in ("od_exp_", "od_log_"):
        text = text.replace(f"{function}K", function + kind)
    words = {
        "K": kind, "W": "i32" if index is dtypes.int32 else "i64",
        "-INF": number(float("-inf"), kind), "ZERO": number(0.0, kind), "ONE": number(1.0, kind),
    }  # fmt: skip
    for word, code in words.items():
        text = _word(text, word, code)
    if index is not dtypes.int32:
        text = text.replace("%l = sext i64 %class to i64", "%l = add i64 %class, 0")
    return "\n".join([*(definition(f, kind) for f in ("exp", "log")), text, _entry()])


def _word(text: str, word: str, code: str) -> str:
    return re.sub(rf"(?<![\w%@.]){re.escape(word)}(?!\w)", code, text)


class _Rows:
    """Loss and gradient of all rows, once the code is there.

    Args:
        dtype: the logits' type.
        index: the type of class numbers; None for distributions.
        scaled: whether each row's gradient is multiplied by a number.
    """

    def __init__(self, dtype: DType, index: DType | None, scaled: bool = False) -> None:
        self._function: Function = request(
            lambda name: _source(dtype, index, scaled).replace("@NAME(", f"@{name}(")
        )
        self._threads, self._loop = threads(), Loop()
        note(f"generated code on up to {self._threads} threads")
        self._call: Any = None

    def __call__(
        self, logits: Array, labels: Array, gains: Array | None = None
    ) -> tuple[Array, Array] | None:
        """The results; None while the code is not there, or for arrays that are not contiguous."""
        if self._function.address is None or logits.size < _SMALL:
            return None
        if not (logits.flags.c_contiguous and labels.flags.c_contiguous):
            return None
        if self._call is None:
            self._call = caller(6)(self._function.address)
        rows, classes = logits.shape
        loss, back = np.empty(rows, logits.dtype), np.empty_like(logits)
        sizes = np.array([rows, classes], np.int64)
        gains = loss if gains is None else np.ascontiguousarray(gains)
        pointers = map(ffi().from_buffer, (logits, labels, loss, back, gains, sizes))
        # At least one chunk, and no more than rows: an empty one would be handed out for nothing.
        chunks = max(1, min(_CHUNKS, logits.size // _CHUNK, rows))
        held = self._loop.begin(chunks, self._threads)
        self._call(*pointers, held.address)
        self._loop.end(held)
        return loss, back


def _when(sig: NodeSig) -> bool | str:
    if not llvm.available():
        return llvm.why_not()
    shape = sig.in_shapes[0]
    if shape is not None and None not in shape and np.prod([n or 0 for n in shape]) < _SMALL:
        return "NumPy is quicker on so few elements"
    return True


Run = Callable[[Array, Array], tuple[Array, Array]]


@table.binder("SoftmaxCrossEntropyWithLogits", T=_FLOATS, when=_when, priority=20)
def dense(sig: NodeSig) -> Run:
    """Against a distribution over the classes."""
    plain, rows = numpy_kernels.xent(sig), _Rows(sig.in_dtypes[0], None)

    def run(logits: Array, labels: Array) -> tuple[Array, Array]:
        done = rows(logits, labels) if logits.shape == labels.shape and logits.ndim == 2 else None
        return plain(logits, labels) if done is None else done

    return run


@table.binder("SparseSoftmaxCrossEntropyWithLogits", T=_FLOATS, when=_when, priority=20)
def sparse(sig: NodeSig) -> Run:
    """Against class numbers."""
    plain, rows = numpy_kernels.sparse_xent(sig), _Rows(sig.in_dtypes[0], sig.in_dtypes[1])

    def run(logits: Array, labels: Array) -> tuple[Array, Array]:
        checks.check_classes(logits, labels)
        numpy_kernels.check_labels(labels, logits.shape[1])
        done = rows(logits, labels)
        return plain(logits, labels) if done is None else done

    return run


# ---------------------------------------------------------------- with the gradient scaled
_KINDS: Final = ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")


def _scaled(sig: NodeSig, sparse: bool) -> Callable[..., tuple[Array, Array]]:
    """The loss, and the gradient times a number for each row."""
    _, dtype, index = sig.in_dtypes
    rows = _Rows(dtype, index if sparse else None, scaled=True)
    inner = NodeSig(sig.op, sig.name, in_dtypes=(dtype, index))
    plain: Run = (numpy_kernels.sparse_xent if sparse else numpy_kernels.xent)(inner)

    def run(gains: Array, logits: Array, labels: Array) -> tuple[Array, Array]:
        if sparse:
            checks.check_classes(logits, labels)
            numpy_kernels.check_labels(labels, logits.shape[1])
        if gains.shape == (len(logits), 1) and (sparse or logits.shape == labels.shape):
            done = rows(logits, labels, gains)
            if done is not None:
                return done
        loss, back = plain(logits, labels)
        return loss, back * gains

    return run


def _when_scaled(nodes: Mapping[str, NodeSig]) -> bool | str:
    shape, product = nodes["xent"].in_shapes[0], nodes[""]
    if product.out_dtypes[0] not in _FLOATS:
        return "float32 and float64 only"
    if any(s is None or len(s) != 2 for s in (*product.in_shapes, shape)):
        return "the factor is not known to be one number a row"
    return any(s[1] == 1 for s in product.in_shapes if s) or "a factor for each element"


for _kind in _KINDS:
    table.binder(f"opdock_cpu>{_kind}Scaled", when=lambda sig: llvm.available() or llvm.why_not())(
        functools.partial(_scaled, sparse=_kind.startswith("Sparse"))
    )

patterns: Final = tuple(
    FusionPattern(
        name=f"scaled_{'sparse_' if kind.startswith('Sparse') else ''}cross_entropy",
        pattern=P("Mul", "gains", P(kind, "logits", "labels", name="xent", output=1)),
        op=f"opdock_cpu>{kind}Scaled",
        outputs=(("xent", 0), ("", 0)),
        when=_when_scaled,
    )
    for kind in _KINDS
    if llvm.available()
)
"""A cross entropy of which the gradient is multiplied row by row; none without generated code."""
