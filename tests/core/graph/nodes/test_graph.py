"""`Graph`: names, scopes, control dependencies, look-up, and what a finalized graph refuses."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def names(graph):
    return [op.name for op in graph.get_operations()]


# ---------------------------------------------------------------- names
def test_names_are_made_unique_by_a_counter(graph):
    for _ in range(3):
        tf.constant(1)
    tf.constant(1, name="Const_1")
    assert names(graph) == ["Const", "Const_1", "Const_2", "Const_1_1"]


def test_names_that_differ_in_case_only_are_kept_apart(graph):
    tf.constant(1, name="a")
    tf.constant(1, name="A")
    assert names(graph) == ["a", "A_1"]


def test_unique_name_can_ask_without_taking(graph):
    assert graph.unique_name("x", mark_as_used=False) == "x"
    assert graph.unique_name("x") == "x"
    assert graph.unique_name("x") == "x_1"
    with tf.name_scope("s"):
        assert graph.unique_name("x") == "s/x"


@given(st.lists(st.sampled_from(["a", "a_1", "A", "b", "a_1_1", "a_2"]), max_size=12))
def test_no_two_operations_ever_share_a_name(wanted):
    with tf.Graph().as_default() as graph:
        for name in wanted:
            tf.constant(0, name=name)
        made = [n.lower() for n in names(graph)]
        assert len(set(made)) == len(wanted)


@pytest.mark.parametrize("wrong", ["_a", "a b", "-a", "a:0", "ä", "/a"])
def test_names_that_are_no_names(wrong):
    with pytest.raises(ValueError, match="not a valid"):
        tf.constant(1, name=wrong)


def test_name_scopes_nest_and_are_made_unique(graph):
    with tf.name_scope("outer") as outer:
        assert outer == "outer/"
        tf.constant(1, name="c")
        with tf.name_scope("inner") as inner:
            assert inner == "outer/inner/"
            assert graph.get_name_scope() == "outer/inner"
            tf.constant(1, name="c")
    with tf.name_scope("outer") as again:
        assert again == "outer_1/"
        tf.constant(1, name="c")
    assert names(graph) == ["outer/c", "outer/inner/c", "outer_1/c"]


def test_a_scope_with_a_slash_is_entered_again(graph):
    with tf.name_scope("s") as scope:
        tf.constant(1, name="c")
    with tf.name_scope("other"), tf.name_scope(scope):
        tf.constant(1, name="c")
    assert names(graph) == ["s/c", "s/c_1"]


def test_none_and_empty_scopes_go_to_the_top(graph):
    with tf.name_scope("s"):
        with tf.name_scope(None):
            tf.constant(1, name="c")
        with tf.name_scope(""):
            tf.constant(1, name="d")
    assert names(graph) == ["c", "d"]


def test_an_op_name_with_a_slash_is_the_exact_name(graph):
    with tf.name_scope("s") as scope:
        tf.identity(tf.constant(1, name="c"), name=scope)
    assert names(graph) == ["s/c", "s"]


def test_default_name_counts_only_when_no_name_is_given():
    with tf.name_scope(None, "d") as first, tf.name_scope("n", "d") as second:
        assert (first, second) == ("d/", "d/n/")
    with pytest.raises(ValueError, match="At least one of name"):
        tf.name_scope(None, None, [1])
    with pytest.raises(TypeError, match="not a string type"):
        tf.name_scope(None, [1])


def test_a_scope_is_left_when_its_body_raises(graph):
    with pytest.raises(RuntimeError), tf.name_scope("s"):
        raise RuntimeError
    assert graph.get_name_scope() == ""


# ---------------------------------------------------------------- default graphs
def test_as_default_nests(graph):
    other = tf.Graph()
    with other.as_default() as inside:
        assert inside is other is tf.get_default_graph()
        with graph.as_default():
            assert tf.get_default_graph() is graph
        assert tf.get_default_graph() is other
    assert tf.get_default_graph() is graph


def test_an_error_ends_the_defaults_that_were_begun_inside():
    before = tf.get_default_graph()
    with pytest.raises(KeyboardInterrupt):
        with tf.Graph().as_default():
            tf.Graph().as_default().__enter__()  # what an interrupt has kept from its end
            raise KeyboardInterrupt
    assert tf.get_default_graph() is before


def test_reset_inside_a_graph_is_refused():
    with pytest.raises(AssertionError, match="nested graphs"):
        tf.reset_default_graph()


def test_the_default_graph_belongs_to_the_thread(graph):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(tf.get_default_graph()))
    thread.start()
    thread.join()
    assert seen[0] is not graph


def test_tensors_of_two_graphs_do_not_mix():
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        b = tf.constant(2.0)
        with pytest.raises(ValueError, match="same graph|not an element"):
            tf.add(a, b)
        with pytest.raises(ValueError, match="not an element|same graph"):
            with tf.control_dependencies([a]):
                pass


# ---------------------------------------------------------------- look-up
def test_finding_by_name(graph):
    c = tf.constant(1, name="c")
    assert graph.get_operation_by_name("c") is c.op
    assert graph.get_tensor_by_name("c:0") is c
    assert graph.as_graph_element("c:0") is graph.as_graph_element(c) is c
    assert graph.as_graph_element("c") is c.op
    v = tf.Variable(1.0, name="v")
    assert graph.as_graph_element(v).name == "v:0"


@pytest.mark.parametrize(
    ("ask", "error", "text"),
    [
        (lambda g: g.get_operation_by_name("no"), KeyError, "not in the graph"),
        (lambda g: g.get_operation_by_name("c:0"), ValueError, "refer to a Tensor, not an Oper"),
        (lambda g: g.get_operation_by_name(3), TypeError, "Operation names are strings"),
        (lambda g: g.get_tensor_by_name("c"), ValueError, "refers to an Operation, not a Tensor"),
        (lambda g: g.get_tensor_by_name("no"), ValueError, "looks like an \\(invalid\\) Operation"),
        (lambda g: g.get_tensor_by_name("no:0"), KeyError, "does not exist in the graph"),
        (lambda g: g.get_tensor_by_name("c:1"), KeyError, "exists but only has 1 outputs"),
        (lambda g: g.get_tensor_by_name("c:x"), ValueError, "<op_name>:<output_index>"),
        (lambda g: g.get_tensor_by_name(3), TypeError, "Tensor names are strings"),
        (lambda g: g.as_graph_element(3), TypeError, "Can not convert a int into a Tensor or Oper"),
        (lambda g: g.as_graph_element(tf.Graph()), TypeError, "Can not convert a Graph"),
    ],
)
def test_look_ups_that_fail(graph, ask, error, text):
    tf.constant(1, name="c")
    with pytest.raises(error, match=text):
        ask(graph)


# ---------------------------------------------------------------- control dependencies
def test_control_inputs_are_those_not_implied_already():
    a, b, c = tf.constant(1, name="a"), tf.constant(1, name="b"), tf.constant(1, name="c")
    with tf.control_dependencies([a, b]):
        d = tf.identity(a)
        e = tf.identity(d)
        with tf.control_dependencies([c, c.op]):
            f = tf.no_op()
            g = tf.identity(d)
    assert [o.name for o in d.op.control_inputs] == ["b"]
    assert e.op.control_inputs == []
    assert [o.name for o in f.control_inputs] == ["a", "b", "c"]
    assert [o.name for o in g.op.control_inputs] == ["c"]
    assert b.op.control_outputs == [d.op, f]


def test_none_clears_outer_control_dependencies():
    a = tf.constant(1)
    with tf.control_dependencies([a]):
        with tf.control_dependencies(None):
            b = tf.no_op()
            with tf.control_dependencies([b]):
                c = tf.no_op()
        d = tf.no_op()
    assert b.control_inputs == []
    assert c.control_inputs == [b]
    assert d.control_inputs == [a.op]


def test_control_dependencies_on_anything_that_is_an_op():
    v = tf.Variable(1.0)
    r = tf.Variable(1.0, use_resource=True)
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    with tf.control_dependencies([v, r, slices, slices.values.name]):
        op = tf.no_op()
    assert [o.type for o in op.control_inputs] == ["VariableV2", "VarHandleOp", "Const"]
    with pytest.raises(TypeError, match="Can not convert"):
        with tf.control_dependencies([3]):
            pass


def test_waiting_for_an_uninitialized_resource_variable_does_not_read_it():
    r = tf.Variable(1.0, use_resource=True)
    with tf.control_dependencies([r]):
        op = tf.no_op()
    with tf.Session() as session:
        session.run(op)


# ---------------------------------------------------------------- devices and colocation
def test_device_scopes_merge_and_none_resets():
    with tf.device("/job:worker/task:1"):
        with tf.device("/gpu:0"):
            a = tf.no_op()
            with tf.device("/task:2"):
                b = tf.no_op()
            with tf.device(None):
                c = tf.no_op()
        d = tf.no_op()
    assert a.device == "/job:worker/task:1/device:GPU:0"
    assert b.device == "/job:worker/task:2/device:GPU:0"
    assert c.device == ""
    assert d.device == "/job:worker/task:1"


def test_device_functions_see_the_op_and_stack():
    seen = []

    def pick(op):
        seen.append(op.type)
        return "/cpu:1" if op.type == "MatMul" else ""

    with tf.device("/job:worker"), tf.device(pick):
        a = tf.placeholder(tf.float32, [1, 1])
        m = tf.matmul(a, a)
    assert seen == ["Placeholder", "MatMul"]
    assert m.device == "/job:worker/device:CPU:1"
    assert a.device == "/job:worker"


def test_colocation(graph):
    with tf.device("/gpu:1"):
        a = tf.constant(1, name="a")
    with tf.colocate_with(a):
        b = tf.constant(1, name="b")
        with tf.device("/cpu:0"), tf.colocate_with(b.op, ignore_existing=True):
            c = tf.constant(1, name="c")
    assert b.op.colocation_groups() == c.op.colocation_groups() == [b"loc:@a"]
    assert a.op.colocation_groups() == [b"loc:@a"]
    assert b.device == c.device == "/device:GPU:1"
    assert b.op.get_attr("_class") == [b"loc:@a"]
    with pytest.raises(ValueError, match="reset colocation"):
        with graph.colocate_with(None):
            pass
    with tf.colocate_with(a), graph.colocate_with(None, ignore_existing=True):
        d = tf.constant(1, name="d")
    assert d.op.colocation_groups() == [b"loc:@d"]
    with tf.colocate_with([[1.0], [2.0]]):
        e = tf.constant(1, name="e")
    [group] = e.op.colocation_groups()
    made = graph.get_operation_by_name(group.decode().removeprefix("loc:@"))
    assert made.type == "Const" and made.outputs[0].shape == [2, 1]
    with pytest.raises(TypeError, match="object"), tf.colocate_with(object()):
        pass


def test_containers_and_kernel_labels(graph):
    with tf.container("box"):
        v = tf.Variable(1.0)
    assert v.op.get_attr("container") == b"box"
    with graph._kernel_label_map({"MatMul": "v2"}):
        m = tf.matmul([[1.0]], [[1.0]])
    assert m.op.get_attr("_kernel") == b"v2"


def test_attr_scope(graph):
    with graph._attr_scope({"_mine": "yes"}):
        a = tf.no_op()
        with graph._attr_scope({"_mine": None}):
            b = tf.no_op()
    assert a.get_attr("_mine") == b"yes"
    with pytest.raises(ValueError, match="no attr named '_mine'"):
        b.get_attr("_mine")


# ---------------------------------------------------------------- changes
def test_a_finalized_graph_refuses_everything(graph):
    a = tf.constant(1)
    with tf.Session() as session:
        graph.finalize()
        assert graph.finalized
        for change in (
            lambda: tf.constant(2),
            lambda: tf.add_to_collection("c", 1),
            lambda: tf.name_scope("x").__enter__() and tf.no_op(),
        ):
            with pytest.raises(RuntimeError, match="Graph is finalized and cannot be modified"):
                change()
        assert session.run(a) == 1


def test_version_grows(graph):
    before = graph.version
    tf.no_op()
    assert graph.version > before
    assert graph.graph_def_versions.producer == 134


def test_gradient_override_map_checks_its_argument(graph):
    with pytest.raises(TypeError, match="dictionary"):
        with graph.gradient_override_map([("Square", "Mine")]):
            pass
    with pytest.raises(TypeError, match="dictionary"):
        with graph.gradient_override_map({"Square": 3}):
            pass


def test_an_error_in_the_graph_names_op_shapes_and_the_users_line():
    a, b = tf.zeros([2, 3]), tf.zeros([4, 5])
    with pytest.raises(ValueError) as caught:
        tf.matmul(a, b, name="bad")
    text = str(caught.value)
    assert "Dimensions must be equal, but are 3 and 4" in text
    assert "'bad' (op: 'MatMul') with input shapes: [2,3], [4,5]" in text
    assert __file__ in text
    # A failed op leaves nothing behind.
    assert "bad" not in tf.get_default_graph()._nodes_by_name


def test_is_feedable_and_fetchable(graph):
    a = tf.constant(1.0)
    graph.prevent_feeding(a)
    b = a + 1
    graph.prevent_fetching(b.op)
    assert not graph.is_feedable(a)
    assert not graph.is_fetchable(b)
    with tf.Session() as session:
        with pytest.raises(ValueError, match="may not be fed"):
            session.run(a * 2, {a: 3.0})
        with pytest.raises(ValueError, match="not fetchable"):
            session.run(b)


def test_device_scopes_end_in_the_order_of_their_nesting():
    graph = tf.Graph()
    outer = graph.device("/device:GPU:8")
    outer.__enter__()
    with (
        graph.device("/device:GPU:9"),
        pytest.raises(RuntimeError, match="without proper scope nesting"),
    ):
        outer.__exit__(None, None, None)


def test_threads_may_have_scopes_of_their_own():
    graph = tf.Graph()
    graph.switch_to_thread_local()
    inside, go_on = threading.Event(), threading.Event()

    def build():
        with graph.as_default(), graph.device("/job:a"):
            inside.set()
            go_on.wait()
            tf.constant(1, name="theirs")

    thread = threading.Thread(target=build)
    thread.start()
    inside.wait()
    with graph.as_default():
        tf.constant(1, name="mine")
    go_on.set()
    thread.join()
    assert graph.get_operation_by_name("mine").device == ""
    assert graph.get_operation_by_name("theirs").device == "/job:a"


def test_init_scope_leaves_functions_that_are_being_built():
    program, function = tf.Graph(), tf.Graph()
    function._building_function = True
    with program.as_default(), function.as_default(), tf.device("/device:GPU:0"):
        with tf.init_scope():
            assert tf.constant(1.0).graph is program
            assert tf.constant(1.0).device == "/device:GPU:0"
        assert tf.constant(1.0).graph is function


def test_an_input_of_a_wrong_type_is_found_when_the_graph_runs():
    with tf.Graph().as_default():
        total = tf.constant(1) + tf.constant(0, name="zero")
        total.op._update_input(0, tf.constant("", name="text"))
        with tf.Session() as session:
            with pytest.raises(
                tf.errors.InvalidArgumentError,
                match="Input 0 of node add was passed string from text:0 incompatible with "
                "expected int32",
            ):
                session.run(total)
            total.op._update_input(0, tf.constant(2))
            assert session.run(total) == 2


def test_graphs_and_their_bodies_have_keys():
    one, two = tf.Graph(), tf.Graph()
    assert one._graph_key == one._graph_key != two._graph_key
    with one.as_default():
        keys = []
        tf.cond(tf.constant(True), lambda: keys.append(tf.get_default_graph()._graph_key) or 1, int)
    assert keys == [one._graph_key]


def test_each_thread_has_a_default_graph_of_its_own():
    here = tf.get_default_graph()
    graphs = []

    def work(inside=None):
        with inside.as_default() if inside else contextlib.nullcontext():
            graphs.append(tf.get_default_graph())
            assert tf.get_variable("of_a_thread", initializer=1.0).graph is graphs[-1]
            if not inside:
                tf.reset_default_graph()
                graphs.append(tf.get_default_graph())

    given = tf.Graph()
    with ThreadPoolExecutor(1) as thread:
        for arguments in ((), (), (given,)):
            thread.submit(work, *arguments).result()
    assert tf.get_default_graph() is here
    assert here not in graphs
    # Of one thread it stays until that resets it.
    assert graphs[1] is graphs[2]
    assert graphs[0] is not graphs[1]
    assert graphs[3] is not graphs[2]
    assert graphs[4] is given
