"""Which inputs are variables: what a definition says once is what each node would say."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.compiler.clean.prune import prune
from opdock.compiler.ir import state
from opdock.graph.nodes import registry

FIXED = [spec for spec in registry.all_ops() if spec.takes_refs and spec.fixed_refs is not None]


def test_many_ops_say_it_once() -> None:
    assert {"Assign", "ApplyAdam", "ScatterNdUpdate"} <= {spec.name for spec in FIXED}


@pytest.mark.parametrize("spec", FIXED, ids=lambda spec: spec.name)
def test_what_a_definition_says_is_what_its_arguments_say(spec: registry.OpSpec) -> None:
    assert spec.fixed_refs is not None
    refs, changed = spec.fixed_refs
    names = [a.name for a in spec.definition.inputs]
    assert refs == {i for i, a in enumerate(spec.definition.inputs) if a.is_ref}
    assert changed == {i for i in refs if names[i] not in spec.traits.reads}


def test_definitions_with_lists_leave_it_to_their_nodes() -> None:
    spec = registry.get("RefSelect")
    assert spec.takes_refs
    assert spec.fixed_refs is None


def test_nodes_of_plain_ops_are_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are looked up for lists and handles alone."""
    asked = []
    look_up = state.positions
    monkeypatch.setattr(
        state, "positions", lambda args, attrs: asked.append(args) or look_up(args, attrs)
    )
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4, 4])
        w = tf.get_variable("w", [4, 4])
        loss = tf.reduce_sum(tf.nn.relu(tf.matmul(x, w)))
        train = tf.train.AdamOptimizer().minimize(loss)
        block = prune([loss], [train], [(x, tf.float32, (4, 4))])
    cells = {node.name: state.cell_inputs(node) for node in block.nodes}
    effects = {node.name for node in block.nodes if state.has_effect(node)}
    assert cells["Adam/update_w/ApplyAdam"] == {0, 1, 2}
    assert {"Adam/update_w/ApplyAdam", "Adam/Assign"} <= effects
    assert "MatMul" not in effects
    assert not asked
