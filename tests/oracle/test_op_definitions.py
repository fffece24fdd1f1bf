"""Every op's definition against TensorFlow 1.15's own listing of its registry.

The listing is TensorFlow's `core/ops/ops.pbtxt` of branch r1.15. It is not part of this
repository; OPDOCK_TF_OPS names the file. The branch's listing is older than its sources in a few
places, and there the sources win.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from opdock.dtypes import as_dtype
from opdock.io import protos
from opdock.io.tensor_proto import decode_array
from opdock.ops.registry import all_ops

LISTING = os.environ.get("OPDOCK_TF_OPS")
needs_listing = pytest.mark.skipif(
    not LISTING,
    reason="TensorFlow's listing of its ops is not here (set OPDOCK_TF_OPS to its ops.pbtxt)",
)

# Op -> why 1.15's listing does not have it.
NEWER = {
    "Erfinv": "from TF 2.2: tf.math.erfinv",
    "Ndtri": "from TF 2.2: tf.math.ndtri",
    "TensorScatterMax": "from TF 2.3: programs of later compat.v1 use it",
    "TensorScatterMin": "from TF 2.3: programs of later compat.v1 use it",
    "GatherTree": "of tf.contrib.seq2seq, whose ops the listing leaves out",
    "_Arg": "a function's argument: internal, so no listing has it",
    "_DeadValue": "what a branch that is not taken gives: internal",
    "_CreateCheckpoint": "what a save of many tensors is made of: internal",
    "_FinishCheckpoint": "what a save of many tensors is made of: internal",
    "_OpenCheckpoint": "what a restore of many tensors is made of: internal",
    "_ReadCheckpoint": "what a restore of many tensors is made of: internal",
    "_WriteCheckpoint": "what a save of many tensors is made of: internal",
}
_AXIS = "attributes of TF 2: graphs that it quantized have them; the defaults are 1.15's behaviour"
_AVERAGE = "an attribute of TF 2 that tf.keras there writes; the default is 1.15's behaviour"
_LISTING_IS_OLDER = "1.15's math_ops.cc has it, though the listing does not"
_READS = "a file may change between steps, so its content is no constant"
_STACKS = "it changes what its handle stands for, and must be neither merged nor left out"
_TABLES = "it reads or changes a table behind a reference, which must not be folded or merged"
_BY_TRAITS = "its traits say what it changes; TF flags it for its handle alone"
# (op, what differs) -> why that is on purpose.
DELIBERATE = {
    ("Abs", "T allowed"): _LISTING_IS_OLDER,
    ("Equal", "attrs"): _LISTING_IS_OLDER,
    ("NotEqual", "attrs"): _LISTING_IS_OLDER,
    ("Dequantize", "attrs"): _AXIS,
    ("Dequantize", "outputs"): "typed by TF 2's attribute dtype, by default float as in 1.15",
    ("QuantizeAndDequantizeV2", "attrs"): _AXIS,
    ("QuantizeAndDequantizeV3", "attrs"): _AXIS,
    ("QuantizeV2", "attrs"): _AXIS,
    ("FusedBatchNorm", "attrs"): _AVERAGE,
    ("FusedBatchNormV2", "attrs"): _AVERAGE,
    ("FusedBatchNormV3", "attrs"): _AVERAGE,
    ("GenerateVocabRemapping", "is_stateful"): _READS,
    ("MatchingFiles", "is_stateful"): _READS,
    ("ReadFile", "is_stateful"): _READS,
    **{
        (op, "is_stateful"): _TABLES
        for op in (
            "InitializeTable",
            "InitializeTableFromTextFile",
            "LookupTableExport",
            "LookupTableFind",
            "LookupTableImport",
            "LookupTableInsert",
            "LookupTableSize",
        )
    },
    **{
        (op, "is_stateful"): _BY_TRAITS
        for op in (
            "ResourceAccumulatorApplyGradient",
            "ResourceAccumulatorNumAccumulated",
            "ResourceAccumulatorSetGlobalStep",
            "ResourceAccumulatorTakeGradient",
            "SetStatsAggregatorDataset",
        )
    },
    ("TensorListResize", "is_stateful"): "a list is a value, and this a function of one",
    **{(f"Stack{name}", "is_stateful"): _STACKS for name in ("Push", "Pop", "Close")},
    **{
        (f"TensorArray{name}{version}", "is_stateful"): _STACKS
        for name in ("Close", "Concat", "Gather", "Read", "Scatter", "Size", "Split", "Write")
        for version in ("", "V2")
    },
    **{(f"TensorArray{name}", "is_stateful"): _STACKS for name in ("Pack", "Unpack")},
}
_FLAGS = ("is_stateful", "is_commutative", "is_aggregate", "allows_uninitialized_input")


def listed() -> dict[str, Any]:
    """TensorFlow's definitions by name."""
    text = Path(LISTING or "").read_text(encoding="utf-8")
    return {op.name: op for op in text_format.Parse(text, protos.OpList()).op}


def parts(op: Any) -> Iterator[tuple[str, Any]]:
    """What a definition says, as pairs that can be compared."""
    for what, args in (("inputs", op.input_arg), ("outputs", op.output_arg)):
        yield (
            what,
            [
                (a.name, a.type, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref)
                for a in args
            ],
        )
    yield "attrs", [a.name for a in op.attr]
    for attr in op.attr:
        yield f"{attr.name} type", attr.type
        yield f"{attr.name} minimum", attr.minimum if attr.has_minimum else None
        yield f"{attr.name} default", default(attr)
        values = attr.allowed_values.list
        names = [as_dtype(t).name for t in values.type] + [s.decode() for s in values.s]
        yield f"{attr.name} allowed", list(dict.fromkeys(names))
    for flag in _FLAGS:
        yield flag, getattr(op, flag)


def default(attr: Any) -> str | None:
    """An attribute's default as text; a tensor's by its content, which has several encodings."""
    if not attr.HasField("default_value"):
        return None
    if attr.type == "tensor":
        array = decode_array(attr.default_value.tensor)
        return f"{array.dtype} {array.tolist()}"
    return str(attr.default_value)


def differences() -> Iterator[tuple[tuple[str, str], str]]:
    """Each difference from TensorFlow's definition, with both sides."""
    theirs = listed()
    for spec in all_ops():
        if spec.name not in theirs:
            continue
        mine, tf = dict(parts(spec.to_proto())), dict(parts(theirs[spec.name]))
        for what in mine.keys() & tf.keys():
            if mine[what] != tf[what]:
                yield (spec.name, what), f"{mine[what]}, in TensorFlow {tf[what]}"


@needs_listing
def test_definitions_are_tensorflows() -> None:
    found = [f"{op} {what}: {text}" for (op, what), text in differences()
             if (op, what) not in DELIBERATE]  # fmt: skip
    assert not found, "\n".join(found)


@needs_listing
def test_every_deliberate_difference_is_there() -> None:
    assert set(DELIBERATE) <= {key for key, _ in differences()}


@needs_listing
def test_ops_that_1_15_does_not_list_are_known() -> None:
    assert {spec.name for spec in all_ops()} - set(listed()) == set(NEWER)
