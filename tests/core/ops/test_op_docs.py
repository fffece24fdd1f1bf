"""Every op type says what it computes, takes and gives."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from importlib import resources

import pytest

import opdock as tf
from opdock.api.raw_ops import generated
from opdock.graph.nodes import registry
from opdock.ops import support
from opdock.ops.support import op_docs

FEWEST = 4
"""Words that a sentence has at least: "As FFT, ..." has more."""
METHODS = {"AdaMax", "Adadelta", "Adagrad", "Adam", "AddSign", "Ftrl", "PowerSign", "RMSProp"}
"""Names of methods, which are no ops."""


def _core_ops() -> dict[str, registry.OpSpec]:
    return {s.name: s for s in registry.all_ops() if s.home["__name__"].startswith("opdock.")}


def _lines() -> list[tuple[str, list[str], str]]:
    """The family, op types and sentences of each line."""
    found, family = [], ""
    for line in (resources.files(support) / "op_docs.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            family = line.strip("[]")
        else:
            ops, _, said = line.partition(": ")
            found.append((family, ops.split(), said))
    return found


def test_each_op_is_described_once_in_its_family() -> None:
    described = Counter((family, op) for family, ops, _said in _lines() for op in ops)
    homes = {(spec.home["__name__"].rpartition(".")[2], op) for op, spec in _core_ops().items()}
    assert described == Counter(homes)


def test_a_description_is_of_that_op_alone() -> None:
    """Ops that do the same share a line; else the words have to tell them apart."""
    said = Counter(said for _family, _ops, said in _lines())
    assert [text for text, times in said.items() if times > 1] == []
    for _family, ops, text in _lines():
        assert len(text.split()) >= FEWEST, ops
        assert text.endswith("."), ops


def test_arguments_that_a_description_names_are_the_ops() -> None:
    wrong = []
    for _family, ops, text in _lines():
        for op in ops:
            definition = registry.get(op).definition
            known = {a.name for a in (*definition.inputs, *definition.outputs)} | {
                *definition.attrs
            }
            named = {word for word in re.findall(r"`(\w+)`", text) if not word[0].isdigit()}
            wrong += [f"{op}: {word}" for word in sorted(named - known)]
    assert wrong == []


def test_ops_that_a_description_refers_to_are_there() -> None:
    known = _core_ops().keys()
    for _family, ops, text in _lines():
        named = re.findall(r"(?:[Gg]radients? of|As|[Ii]nverse of|step of) ([A-Z]\w+)", text)
        assert set(named) - known <= METHODS, ops


def test_a_docstring_names_every_argument_by_its_public_name() -> None:
    for op in _core_ops():
        if op.startswith("_"):
            continue
        function = getattr(tf.raw_ops, op)
        with pytest.raises(TypeError, match="only takes keyword args") as refused:
            function(0)
        keys = re.findall(r"'(\w+)'", str(refused.value).partition("keys: [")[2])
        for doc in (inspect.getdoc(function), inspect.getdoc(generated(op))):
            assert doc is not None
            assert doc.startswith(op_docs.sentences()[op])
            assert (
                re.findall(r"^    (\w+): ", doc[: doc.index("Returns:")], re.MULTILINE) == keys
            ), op


def test_a_docstring_tells_types_defaults_and_what_comes_out() -> None:
    doc = tf.raw_ops.MatMul.__doc__
    assert "`T` is one of" in doc or "`T` is bfloat16, float16, float32" in doc
    assert "    a: a tensor of type `T`.\n" in doc
    assert "    transpose_a: a bool; False by default.\n" in doc
    assert "`product`, a tensor of type `T`." in doc
    assert "    axis: a tensor of type `Tidx`.\n" in tf.raw_ops.Sum.__doc__
    assert "a string, 'SAME' or 'VALID'" in tf.raw_ops.MaxPool3D.__doc__
    assert "No gradient flows through it." in tf.raw_ops.ArgMax.__doc__
    assert "a list of `N` tensors, at least 2, of type `T`." in tf.raw_ops.ConcatV2.__doc__


def test_an_op_of_a_plugin_shows_its_signature() -> None:
    spec = registry.OpSpec(
        "acme>Twice", "x: float -> y: float", "", stateful=False, commutative=False,
        aggregate=False, allows_uninitialized_input=False, expr=None,
    )  # fmt: skip
    doc = op_docs.docstring(spec, {})
    assert doc.startswith(
        "acme>Twice: x: float -> y: float\n\nArgs:\n    x: a tensor of type float32."
    )
