"""Why rows of ops are slower than TensorFlow's: what limits them, by patterns of their names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

__all__ = ["OPEN", "REASONS", "reason"]

OPEN: Final = "no reason known"
_STRINGS: Final = "each string is an object of Python's, made and looked at one by one"
_SCIPY: Final = "SciPy's function, which computes in double precision"
_DOUBLE: Final = "vectors in double precision, for two units in the last place"
_LAPACK: Final = "LAPACK and products of small matrices, called from Python for each or for all"
_STEPS: Final = "NumPy's calls for each step of the sequence"
_TAPS: Final = "the portable kernel: a pass over the whole array for each place of a window"
_REJECTION: Final = "all outputs that are still undecided take their next step together in NumPy"
_FEW: Final = "few numbers, in NumPy until a process has drawn enough to load the compiler"
_PASSES: Final = "several passes of NumPy's where TensorFlow has one loop"

REASONS: Final = {
    "String* Regex* StaticRegex* AsString Decode* Encode* ReduceJoin* Substr Unicode*": _STRINGS,
    "UnsortedSegmentJoin Parse* Serialize* Deserialize*": _STRINGS,
    "Igamma* Betainc* Zeta* Polygamma* Lgamma* Digamma* Erfinv* Ndtri* RandomGammaGrad": _SCIPY,
    "Acos* Asin* Atan* Cosh* Sinh* Erf Erfc Bessel* Pow": _DOUBLE,
    "*FFT*": "SciPy's transform in single precision",
    "Matrix* Batch* Lu* Cholesky* SelfAdjoint* Svd* Qr* LogMatrix* Tridiagonal* Einsum*": _LAPACK,
    "BlockLSTM* GRU* LSTMBlock* CTC*": _STEPS,
    "*Pool*": _TAPS,
    "RandomGamma* RandomPoisson* *TruncatedNormal": _REJECTION,
    "Random* Stateful* Stateless*": _FEW,
}
"""Patterns of op types, apart by spaces, with the reason; the first that matches counts."""


def reason(name: str) -> str:
    """The reason of a row."""
    op = name.split(".", 1)[0]
    for patterns, why in REASONS.items():
        if any(fnmatchcase(op, p) for p in patterns.split()):
            return why
    return OPEN
