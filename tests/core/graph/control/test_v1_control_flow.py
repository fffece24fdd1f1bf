"""GraphDefs with TF 1's first control flow: branches, loops, and both inside each other.

The graphs are written node by node, as `tf.cond` and `tf.while_loop` of TF 1 wrote them.
"""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from tests.core.graph.control.v1_graphs import (
    BOOL,
    FLOAT,
    INT,
    Loop,
    Text,
    branch,
    count_to,
)


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_a_cond() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    assert g.run("cond/Merge:0", {"p:0": True, "x:0": 5.0}) == 10.0
    graph = tf.get_default_graph()
    with tf.Session() as sess:
        assert sess.run("cond/Merge:0", {"p:0": False, "x:0": 5.0}) == 4.0
    assert graph.get_operation_by_name("cond/If").type == "StatelessIf"
    assert graph.get_tensor_by_name("cond/Merge:0").shape.as_list() == []
    assert not [op for op in graph.get_operations() if op.type in ("Switch", "Merge")]


def test_a_cond_in_a_scope() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    for _ in range(2):
        (out,) = tf.import_graph_def(
            g.graph_def, input_map={"x:0": tf.constant(3.0), "p:0": tf.constant(True)},
            return_elements=["cond/Merge:0"],
        )  # fmt: skip
    assert out.name == "import_1/cond/Merge:0"
    with tf.Session() as sess:
        assert sess.run(out) == 6.0


def test_only_the_taken_branch_runs() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.node("v", "VariableV2", dtype=FLOAT, shape=())
    g.const("zero", 0.0)
    g.node("init", "Assign", "v", "zero", T=FLOAT)
    g.switches("cond", "p")
    for side, index in (("t", 1), ("f", 0)):
        g.const(f"cond/{side}", 1.0 if index else 10.0, f"^cond/switch_{side}")
        g.node(f"cond/{side}/Switch", "RefSwitch", "v", "cond/pred_id", T=FLOAT, _class=["loc:@v"])
        g.node(
            f"cond/{side}/add", "AssignAdd", f"cond/{side}/Switch:{index}", f"cond/{side}", T=FLOAT
        )
        # tf.cond on operations returns its pivots.
        g.node(f"cond/{side}/done", "Identity", f"cond/switch_{side}", f"^cond/{side}/add", T=BOOL)
    g.node("cond/Merge", "Merge", "cond/f/done", "cond/t/done", T=BOOL, N=2)
    g.node("read", "Identity", "v", T=FLOAT)
    tf.import_graph_def(g.graph_def, name="")
    assert tf.get_default_graph().get_operation_by_name("cond/If").type == "If"
    with tf.Session() as sess:
        sess.run("init")
        sess.run("cond/Merge:0", {"p:0": True})
        assert sess.run("read:0") == 1.0
        sess.run("cond/Merge:0", {"p:0": False})
        assert sess.run("read:0") == 11.0


def test_two_results_are_one_cond() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    g.node("cond/Merge_1", "Merge", "cond/mul/Switch:0", "cond/mul", T=FLOAT, N=2)
    assert g.run(["cond/Merge:0", "cond/Merge_1:0"], {"p:0": True, "x:0": 5.0}) == [10.0, 10.0]
    with tf.Session() as sess:
        feed = {"p:0": False, "x:0": 5.0}
        assert sess.run(["cond/Merge:0", "cond/Merge_1:0"], feed) == [4.0, 5.0]
    kinds = [op.type for op in tf.get_default_graph().get_operations()]
    assert kinds.count("StatelessIf") == 1


def test_merged_the_other_way_round() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    g.graph_def.node[-1].input[:] = ["cond/mul", "cond/sub"]
    assert g.run("cond/Merge:0", {"p:0": True, "x:0": 5.0}) == 10.0


@pytest.mark.parametrize(("p", "q", "want"), [(1, 1, 20.0), (1, 0, 9.0), (0, 1, 7.0), (0, 0, 7.0)])
def test_a_cond_in_a_cond(p: int, q: int, want: float) -> None:
    g = Text()
    for name, dtype in (("p", BOOL), ("q", BOOL), ("x", FLOAT)):
        g.placeholder(name, dtype)
    g.switches("cond", "p")
    g.node("cond/double/Switch", "Switch", "x", "cond/pred_id", T=FLOAT)
    g.node("cond/double", "Add", "cond/double/Switch:1", "cond/double/Switch:1", T=FLOAT)
    g.node("cond/q/Switch", "Switch", "q", "cond/pred_id", T=BOOL)
    branch(g, "cond/cond", "cond/q/Switch:1", "cond/double", 2.0, 1.0)
    g.node("cond/add/Switch", "Switch", "x", "cond/pred_id", T=FLOAT)
    g.const("cond/add/y", 2.0, "^cond/switch_f")
    g.node("cond/add", "Add", "cond/add/Switch", "cond/add/y", T=FLOAT)
    g.node("cond/Merge", "Merge", "cond/add", "cond/cond/Merge", T=FLOAT, N=2)
    assert g.run("cond/Merge:0", {"p:0": bool(p), "q:0": bool(q), "x:0": 5.0}) == want


def test_constants_and_large_outer_values() -> None:
    """Control edges may be gone from a frozen graph, and a branch may name an outer node."""
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT, (200,))
    g.const("big", np.arange(200.0))
    g.switches("cond", "p")
    g.node("cond/Switch_x", "Switch", "x", "cond/pred_id", T=FLOAT)
    g.node("cond/add", "Add", "cond/Switch_x:1", "big", T=FLOAT)
    g.const("cond/one", 1.0)
    g.node("cond/sub", "Sub", "cond/Switch_x", "cond/one", T=FLOAT)
    g.node("cond/Merge", "Merge", "cond/sub", "cond/add", T=FLOAT, N=2)
    out = g.run("cond/Merge:0", {"p:0": True, "x:0": np.ones(200)})
    np.testing.assert_array_equal(out, np.arange(200.0) + 1)
    inputs = tf.get_default_graph().get_operation_by_name("cond/If").inputs
    assert "big:0" in [t.name for t in inputs]


# ---------------------------------------------------------------- loops
def test_a_loop() -> None:
    g = Text()
    g.placeholder("n", INT)
    g.placeholder("x", FLOAT, (2,))
    g.const("two", 2.0)
    count_to(g, "while", "n", "x", "two")
    assert g.run("while/Exit_1:0", {"n:0": 3, "x:0": [1.0, 2.0]}).tolist() == [8.0, 16.0]
    with tf.Session() as sess:
        assert sess.run("while/Exit_0:0", {"n:0": 5, "x:0": [0.0, 0.0]}) == 5
        assert sess.run("while/Exit_1:0", {"n:0": 0, "x:0": [1.0, 2.0]}).tolist() == [1.0, 2.0]
    op = tf.get_default_graph().get_operation_by_name("while/While")
    assert op.type == "StatelessWhile"
    assert op.get_attr("parallel_iterations") == 7
    assert tf.get_default_graph().get_tensor_by_name("while/Exit_1:0").shape.as_list() == [2]


def test_a_loop_whose_shape_grows() -> None:
    g = Text()
    g.const("start", [1.0])
    g.const("while/axis", 0)
    loop = Loop(g, "while", [("start", FLOAT)])
    g.node("while/Size", "Size", "while/Merge_0", T=FLOAT)
    g.const("while/limit", 9, "^while/Merge_0")
    g.node("while/Less", "Less", "while/Size", "while/limit", T=INT)
    loop.cond("while/Less")
    axis = loop.enter("axis/Enter", "while/axis", INT)
    g.node("while/concat", "ConcatV2", "while/Identity_0", "while/Identity_0", axis, T=FLOAT, N=2)
    loop.close("while/concat")
    assert g.run("while/Exit_0:0").tolist() == [1.0] * 16
    assert tf.get_default_graph().get_tensor_by_name("while/Exit_0:0").shape.as_list() == [None]


def test_a_loop_in_a_loop() -> None:
    g = Text()
    g.placeholder("n", INT)
    g.const("one_f", 1.0)
    g.const("two", 2.0)
    g.const("while/Const", 0)
    outer = Loop(g, "while", [("while/Const", INT), ("one_f", FLOAT)])
    g.node("while/Less", "Less", "while/Merge_0", outer.enter("Less/Enter", "n", INT), T=INT)
    outer.cond("while/Less")
    g.const("while/one", 1, "^while/Identity_0")
    g.node("while/add", "Add", "while/Identity_0", "while/one", T=INT)
    outer.enter("two/Enter", "two", FLOAT)
    # In turn i the inner loop doubles i times.
    count_to(g, "while/while", "while/Identity_0", "while/Identity_1", "while/two/Enter")
    outer.close("while/add", "while/while/Exit_1")
    assert g.run("while/Exit_1:0", {"n:0": 4}) == 2.0 ** (0 + 1 + 2 + 3)


def test_a_cond_in_a_loop() -> None:
    g = Text()
    g.placeholder("n", INT)
    g.const("start", 1.0)
    g.const("limit", 3.0)
    loop = Loop(g, "while", [("zero", INT), ("start", FLOAT)])
    g.const("zero", 0)
    g.node("while/Less", "Less", "while/Merge_0", loop.enter("Less/Enter", "n", INT), T=INT)
    loop.cond("while/Less")
    g.const("while/one", 1, "^while/Identity_0")
    g.node("while/add", "Add", "while/Identity_0", "while/one", T=INT)
    limit = loop.enter("limit/Enter", "limit", FLOAT)
    g.node("while/small", "Less", "while/Identity_1", limit, T=FLOAT)
    branch(g, "while/cond", "while/small", "while/Identity_1", 2.0, 3.0)
    loop.close("while/add", "while/cond/Merge")
    # 1 -> 2 -> 4 -> 1 -> 2
    assert g.run("while/Exit_1:0", {"n:0": 4}) == 2.0


@pytest.mark.parametrize(("p", "want"), [(True, 24.0), (False, 2.0)])
def test_a_loop_in_a_cond(p: bool, want: float) -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    g.const("two", 2.0)
    g.const("n", 3)
    g.switches("cond", "p")
    for name, source, dtype in (("x", "x", FLOAT), ("two", "two", FLOAT), ("n", "n", INT)):
        g.node(f"cond/{name}/Switch", "Switch", source, "cond/pred_id", T=dtype)
    count_to(g, "cond/while", "cond/n/Switch:1", "cond/x/Switch:1", "cond/two/Switch:1")
    g.graph_def.node[[n.name for n in g.graph_def.node].index("cond/while/Const")].input.append(
        "^cond/switch_t"
    )
    g.const("cond/one", 1.0, "^cond/switch_f")
    g.node("cond/sub", "Sub", "cond/x/Switch", "cond/one", T=FLOAT)
    g.node("cond/Merge", "Merge", "cond/sub", "cond/while/Exit_1", T=FLOAT, N=2)
    assert g.run("cond/Merge:0", {"p:0": p, "x:0": 3.0}) == want


def test_it_survives_a_round_trip() -> None:
    g = Text()
    g.placeholder("n", INT)
    g.placeholder("x", FLOAT, (2,))
    g.const("two", 2.0)
    count_to(g, "while", "n", "x", "two")
    tf.import_graph_def(g.graph_def, name="")
    again = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.import_graph_def(again, name="")
        assert sess.run("while/Exit_1:0", {"n:0": 3, "x:0": [1.0, 2.0]}).tolist() == [8.0, 16.0]


# ---------------------------------------------------------------- what has no functional form
def refused(g: Text, message: str) -> None:
    with pytest.raises(tf.errors.UnimplementedError, match=message):
        tf.import_graph_def(g.graph_def)
    assert not tf.get_default_graph().get_operations()


def test_a_merge_of_anything() -> None:
    g = Text()
    g.const("a", 1.0)
    g.const("b", 2.0)
    g.node("m", "Merge", "a", "b", T=FLOAT, N=2)
    refused(g, r"Node 'm' \(Merge\).*no predicate")


def test_three_way_merges() -> None:
    g = Text()
    for name in "abc":
        g.const(name, 1.0)
    g.node("m", "Merge", "a", "b", "c", T=FLOAT, N=3)
    refused(g, r"Node 'm' \(Merge\).*no predicate")


def test_the_number_of_the_branch() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    g.node("which", "Identity", "cond/Merge:1", T=INT)
    assert g.run(["which:0", "cond/Merge:0"], {"p:0": True, "x:0": 5.0}) == [1, 10.0]
    with tf.Session() as sess:
        assert sess.run("which:0", {"p:0": False, "x:0": 5.0}) == 0


def test_the_number_of_a_merge_the_other_way_round() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    g.graph_def.node[-1].input[:] = ["cond/mul", "cond/sub"]
    g.node("which", "Identity", "cond/Merge:1", T=INT)
    assert g.run("which:0", {"p:0": True, "x:0": 5.0}) == 0


def test_a_cond_waits_for_what_its_branches_wait_for() -> None:
    g = Text()
    g.placeholder("p", BOOL)
    g.placeholder("x", FLOAT)
    g.node("v", "VariableV2", dtype=FLOAT, shape=())
    g.const("one", 1.0)
    g.node("set", "Assign", "v", "one", T=FLOAT)
    branch(g, "cond", "p", "x", 2.0, 1.0)
    (mul,) = (n for n in g.graph_def.node if n.name == "cond/mul")
    mul.input.append("^set")
    assert g.run("cond/Merge:0", {"p:0": True, "x:0": 5.0}) == 10.0
    made = tf.get_default_graph().get_operation_by_name("cond/If")
    assert [op.name for op in made.control_inputs] == ["set"]


def test_a_frame_that_is_no_loop() -> None:
    g = Text()
    g.const("a", 1.0)
    g.node("e", "Enter", "a", T=FLOAT, frame_name="f")
    g.node("twice", "Add", "e", "e", T=FLOAT)
    g.node("x", "Exit", "twice", T=FLOAT)
    assert g.run("x:0") == 2.0


def test_a_switch_that_nothing_merges_stays():
    with tf.Graph().as_default() as built:
        x, p = tf.placeholder(tf.float32, [], "x"), tf.placeholder(tf.bool, [], "p")
        no, yes = tf.raw_ops.Switch(data=x, pred=p)
        tf.negative(yes, name="yes")
        tf.identity(no, name="no")
        tf.cond(p, lambda: x + 1, lambda: x - 1)
    with tf.Graph().as_default():
        tf.import_graph_def(built.as_graph_def(), name="")
        with tf.Session() as session:
            assert session.run("yes:0", {"x:0": 3.0, "p:0": True}) == -3
            assert session.run("no:0", {"x:0": 3.0, "p:0": False}) == 3
            with pytest.raises(tf.errors.InvalidArgumentError, match="does not have value"):
                session.run("yes:0", {"x:0": 3.0, "p:0": False})


def pushing(g: Text, branches: bool) -> None:
    """A loop whose turns put what they multiply on a stack, for what a gradient pops; in a branch
    of a cond, if `branches`, and then for the turns alone that take it."""
    g.placeholder("n", INT)
    g.const("start", 1.0)
    g.const("limit", 3.0)
    g.const("zero", 0)
    g.const("size", 10)
    g.node("acc", "StackV2", "size", stack_name="acc")
    g.graph_def.node[-1].attr["elem_type"].type = FLOAT
    loop = Loop(g, "while", [("zero", INT), ("start", FLOAT)])
    g.node("while/Less", "Less", "while/Merge_0", loop.enter("Less/Enter", "n", INT), T=INT)
    loop.cond("while/Less")
    g.const("while/one", 1, "^while/Identity_0")
    g.node("while/add", "Add", "while/Identity_0", "while/one", T=INT)
    handle = g.node(
        "while/acc", "Enter", "acc", T=20, frame_name=loop.frame, is_constant=True,
        parallel_iterations=7,
    )  # fmt: skip
    value, result = "while/Identity_1", "while/mul"
    if branches:
        limit = loop.enter("limit/Enter", "limit", FLOAT)
        g.node("while/small", "Less", "while/Identity_1", limit, T=FLOAT)
        branch(g, "while/cond", "while/small", "while/Identity_1", 2.0, 3.0)
        g.node("while/push/Switch", "Switch", handle, "while/cond/pred_id", T=20)
        handle, value, result = "while/push/Switch:1", "while/cond/mul/Switch:1", "while/cond/Merge"
    else:
        g.const("while/two", 2.0, "^while/Identity_0")
        g.node("while/mul", "Mul", "while/Identity_1", "while/two", T=FLOAT)
    g.node("while/push", "StackPushV2", handle, value, T=FLOAT, swap_memory=False)
    g.node("while/sync", "ControlTrigger", "^while/push")
    loop.close("while/add", result)
    g.graph_def.node[-2].input.append("^while/sync")  # that of the number of turns
    g.node("pop", "StackPopV2", "acc", "^while/Exit_0")
    g.node("pop_2", "StackPopV2", "acc", "^pop")
    for node in g.graph_def.node[-2:]:
        node.attr["elem_type"].type = FLOAT


@pytest.mark.parametrize(("branches", "want"), [(False, [8.0, 4.0]), (True, [1.0, 2.0])])
def test_turns_wait_for_what_gradients_record(branches: bool, want: list[float]) -> None:
    g = Text()
    pushing(g, branches)
    # 1 -> 2 -> 4 -> 1 -> 2 with branches; without, 1 -> 2 -> 4 -> 8 -> 16
    popped = g.run(["pop:0", "pop_2:0", "while/Exit_1:0"], {"n:0": 4})
    assert popped[:2] == want
    assert popped[2] == (2.0 if branches else 16.0)
