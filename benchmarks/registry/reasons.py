"""Why rows of ops are slower than TensorFlow's: what limits them, by patterns of their names."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

__all__ = ["NEAR", "OPEN", "REASONS", "reason"]

OPEN: Final = "no reason known"
NEAR: Final = "as quick, as far as a busy machine can tell"
_STRINGS: Final = (
    "each string is an object of Python's: 8 ns to look at what is fed, 2 to bring its bytes "
    "together, 15 to make a new one and let the old one go, and 13 more where its memory is new"
)
_PIECES: Final = "each string is an object of Python's, looked at one by one"
_PATTERNS: Final = (
    "what automata do not know is asked of RE2, from Python, 1.7 µs for each string that differs"
)
_SERIES: Final = "sums of as many terms as the slowest of eight numbers takes, in double precision"
_DOUBLE: Final = "vectors in double precision, for two units in the last place"
_LAPACK: Final = "LAPACK and products of small matrices, called from Python for each or for all"
_STEPS: Final = (
    "some ten calls of NumPy's, 0.5 µs each, beside the product for each step of the sequence "
    "forward; back it is a loop"
)
_TAPS: Final = "the portable kernel: a pass over the whole array for each place of a window"
_REJECTION: Final = "few numbers: some twenty calls of NumPy's, 0.7 µs each, for normals and choice"
_FEW: Final = "few numbers, in NumPy until a process has drawn enough to load the compiler"
_LITTLE: Final = "little work, in NumPy unless the process has other generated code"
_UNDECIDED: Final = (
    "passes of NumPy's over the numbers that are undecided: a loop rounds otherwise, which double "
    "precision tells"
)
_FRESH: Final = "hundreds of MB of new memory in each step, whose pages the system clears"
_ROWS: Final = "each row is looked at by Python"
_ORDER: Final = (
    "whether cells are in order is seen before they are merged or found: each is read twice"
)
_PARTED: Final = "each row is parted three times or so, until what is wanted is found"
_PASSES: Final = "several passes of NumPy's where TensorFlow has one loop"

_BEAM: Final = (
    "each step of each sequence is some thirty calls of NumPy's on the few prefixes of a beam"
)
_BOXES: Final = "halves: NumPy looks at all boxes for each one that is chosen, and rounds each step"

REASONS: Final = {
    "RandomGamma.*float64 RandomPoissonV2.*float64": _UNDECIDED,
    "MatrixDiag MatrixDiagV*": _FRESH,
    "CTCBeam*": _BEAM,
    "NonMaxSuppression*": _BOXES,
    "BroadcastTo": "one copy of NumPy's, which repeats few numbers at a time",
    "SpaceToBatch* BatchToSpace*": "NumPy copies pieces of two elements, 8 bytes, 4 ns for each",
    "Regex* StaticRegex*": _PATTERNS,
    "Unicode* Parse* Serialize* Deserialize*": _PIECES,
    "SdcaFprint String* AsString Decode* Encode* ReduceJoin* Substr UnsortedSegmentJoin": _STRINGS,
    "Betainc* Lgamma* Digamma* Igamma* Polygamma* Zeta*": _SERIES,
    "RandomGammaGrad": "sums of 4 to 70 terms, in the tail of 24, in doubles: 0.8 ns a term",
    "Acosh* Asinh* Atan* Cosh* Sinh* Erf Erfc Bessel* Pow Erfinv* Ndtri*": _DOUBLE,
    "*FFT*": (
        "SciPy's transform, whose code has vectors of four numbers for all processors: "
        "5 n log n operations, 2.3 in a ns and a thread"
    ),
    "Conv2DBackpropInput": "oneDNN's, for a window as large as the image",
    "DenseToDenseSetOperation": "NumPy's sort of each row, on one thread",
    "Matrix* Batch* Lu* Cholesky* SelfAdjoint* Svd* Qr* LogMatrix* Tridiagonal* Einsum*": _LAPACK,
    "BlockLSTM* GRU* LSTMBlock* CTC*": _STEPS,
    "*Pool*": _TAPS,
    "RandomPoisson*": "a block of random bits for each two draws, as TensorFlow, not in vectors",
    "RandomGamma* *TruncatedNormal": _REJECTION,
    "Random* Stateful* Stateless*": _FEW,
    "CropAndResize": _LITTLE,
    "EditDistance": "NumPy sorts the cells by sequence; the distances themselves are a loop",
    "Fingerprint KMC2* ReverseSequence*": _ROWS,
    "NearestNeighbors CombinedNonMax* ImageProj* Ragged* Histogram* Bucketize": _PASSES,
    "SparseAdd*": _ORDER,
    "NthElement": _PARTED,
    "Complex* Angle Cast FloorMod Quantize* FakeQuant* Cumulative*": _PASSES,
    "*SegmentM* *SegmentSqrtN* Resize* ScaleAndTranslate* *ScatterDiv* Inplace*": _PASSES,
    "Elu* Selu* Resource* Sparse* Unique* Where* ListDiff SampleDistorted* SdcaShrink*": _PASSES,
    "Multinomial": _PASSES,
}
"""Patterns of op types, or of rows, apart by spaces, with the reason; the first that fits."""


_CLOSE: Final = 0.9


def reason(name: str, ratio: float) -> str:
    """The reason of a row."""
    if ratio >= _CLOSE:
        return NEAR
    op = name.split(".", 1)[0]
    for patterns, why in REASONS.items():
        if any(fnmatchcase(op, p) or fnmatchcase(name, p) for p in patterns.split()):
            return why
    return OPEN
