"""How profiles are put in order, chosen from and printed: lines as TensorFlow 2.21 has them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opdock as tf
from opdock.io.pprof_messages import Profile

BUILDER = tf.profiler.ProfileOptionBuilder


@pytest.fixture
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        images = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
        with tf.variable_scope("conv"):
            filters = tf.get_variable("w", [3, 3, 3, 4])
            hidden = tf.nn.conv2d(images, filters, [1, 2, 2, 1], "SAME")
            hidden = tf.nn.bias_add(hidden, tf.get_variable("b", [4]))
        with tf.variable_scope("fc"):
            weights = tf.get_variable("w", [64, 5])
            tf.matmul(tf.reshape(hidden, [2, 64]), weights)
        yield graph


def printed(graph: tf.Graph, path: Path, cmd: str, options: dict[str, Any]) -> list[str]:
    options = BUILDER(options).with_file_output(str(path / "profile")).build()
    tf.profiler.profile(graph, cmd=cmd, options=options)
    meanings, lines = (path / "profile").read_text().split("\nProfile:\n")
    assert meanings.startswith(f"\nDoc:\n{cmd}: ")
    assert len(meanings.splitlines()) == 3 + len(options["select"])
    return lines.splitlines()


def test_the_tree_of_scopes(graph: tf.Graph, tmp_path: Path) -> None:
    options = BUILDER.trainable_variables_parameter()
    options["select"] = ["params", "op_types", "occurrence"]
    assert printed(graph, tmp_path, "scope", options) == [
        "node name | # parameters | op types | op count (run|defined)",
        "_TFProfRoot (--/432 params, _kTFScopeParent, --/0|--/6)",
        "  conv (--/112 params, _kTFScopeParent, --/0|--/3)",
        "    conv/b (4, 4/4 params, VariableV2|_trainable_variables, 0/0|1/1)",
        "    conv/w (3x3x3x4, 108/108 params, VariableV2|_trainable_variables, 0/0|1/1)",
        "  fc (--/320 params, _kTFScopeParent, --/0|--/2)",
        "    fc/w (64x5, 320/320 params, VariableV2|_trainable_variables, 0/0|1/1)",
    ]


def test_the_list_of_op_types(graph: tf.Graph, tmp_path: Path) -> None:
    options = BUILDER.float_operation()
    options["show_name_regexes"] = ["Conv.*", "Mat.*"]
    options["select"] = ["float_ops", "occurrence", "input_shapes"]
    assert printed(graph, tmp_path, "op", options) == [
        "node name | # float_ops | op occurrence (run|defined) | input shapes",
        "Conv2D                   6.91k float_ops (100.00%, 84.38%),        0|1",
        "",
        "input_type: 0:2x8x8x3,\t1:3x3x3x4\t(run*0|defined*1)\texec_time: 0us",
        "",
        "MatMul                   1.28k float_ops (15.62%, 15.62%),        0|1",
        "",
        "input_type: 0:2x64,\t1:64x5\t(run*0|defined*1)\texec_time: 0us",
        "",
    ]


def test_what_does_not_count_is_left_out_of_the_graph_and_hands_on_its_inputs(
    graph: tf.Graph,
) -> None:
    options = BUILDER().with_accounted_types(["Variable.*", "MatMul"]).with_empty_output().build()
    root = tf.profiler.profile(graph, cmd="graph", options=options)
    tree = {node.name: [below.name for below in node.children] for node in root.children}
    assert tree == {"conv/b": [], "conv/w": [], "fc/MatMul": ["fc/w"]}
    assert root.total_parameters == 432


def test_the_tree_of_calls(graph: tf.Graph) -> None:
    builder = BUILDER(BUILDER.float_operation()).with_empty_output()
    options = builder.with_node_names(show_name_regexes=[".*test_views.*"]).build()
    root = tf.profiler.profile(graph, cmd="code", options=options)
    lines = {node.name.split(":")[0] for node in root.children}
    assert lines == {"test_views.py"}
    assert sum(node.total_float_ops for node in root.children) == root.total_float_ops
    leaf = max(root.children, key=lambda node: node.total_float_ops)
    assert "conv/Conv2D" in {node.name for node in leaf.graph_nodes}


def outer(x: Any) -> Any:
    x = tf.square(x)
    return middle(x)


def middle(x: Any) -> Any:
    x = tf.square(x)
    return inner(x)


def inner(x: Any) -> Any:
    return innermost(tf.square(x))


def innermost(x: Any) -> Any:
    return tf.square(tf.square(x))


def test_calls_that_a_node_does_not_know_are_those_of_others() -> None:
    with tf.Graph().as_default() as graph:
        outer(tf.placeholder(tf.float32, [2]))
        options = BUILDER(BUILDER.float_operation()).with_empty_output()
        chosen = options.with_node_names(show_name_regexes=["test_views.py.*"]).build()
        root = tf.profiler.profile(graph, cmd="code", options=chosen)
    (test,) = root.children
    assert (test.name.split(":")[0], test.total_float_ops) == ("test_views.py", 10)
    own, called = sorted(test.children, key=lambda node: node.total_float_ops)
    assert (own.total_float_ops, called.total_float_ops) == (2, 8)


def test_files_for_pprof(
    graph: tf.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "profile.pb.gz"
    builder = BUILDER(BUILDER.float_operation()).with_pprof_output(str(path))
    found = tf.profiler.profile(graph, cmd="code", options=builder.build())
    written = Profile.FromString(gzip.decompress(path.read_bytes()))
    texts = written.string_table
    assert [texts[kind.type] for kind in written.sample_type] == ["count", "float_ops"]
    assert sum(sample.value[1] for sample in written.sample) == found.total_float_ops
    functions = {function.id: texts[function.name] for function in written.function}
    locations = {place.id: functions[place.line[0].function_id] for place in written.location}
    most = max(written.sample, key=lambda sample: sample.value[1])
    assert locations[most.location_id[0]] == "graph"  # the fixture, and pytest around it
    path.unlink()
    tf.profiler.profile(graph, cmd="code", options=builder.select(["device"]).build())
    assert "one figure" in capsys.readouterr().err
    assert not path.exists()


def test_gradients_stand_with_the_calls_of_their_ops() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3])
        tf.gradients(tf.square(x), x)
        options = BUILDER(BUILDER.float_operation()).with_empty_output().build()
        root = tf.profiler.profile(graph, cmd="code", options=options)
    names = [node.name for node in root.children]
    assert any(name.endswith(" (gradient)") for name in names)


def test_start_trim_hide_and_depth(graph: tf.Graph) -> None:
    def names(**chosen: Any) -> list[str]:
        builder = BUILDER().with_node_names(**chosen).with_empty_output()
        root = tf.profiler.profile(graph, options=builder.build())
        return [node.name for node in root.children]

    assert names(start_name_regexes=["fc/.*"], show_name_regexes=["fc/[wM][^/]*"]) == [
        "fc/MatMul",
        "fc/w",
    ]
    assert names(show_name_regexes=["conv.*"], hide_name_regexes=["conv/w.*", "conv/b.*"]) == [
        "conv"
    ]
    assert names(show_name_regexes=[".*/w"], trim_name_regexes=["conv"]) == ["fc/w"]
    shallow = BUILDER().with_max_depth(2).with_empty_output().build()
    root = tf.profiler.profile(graph, options=shallow)
    assert "conv" in [node.name for node in root.children]
    assert not any(node.children for node in root.children)


def test_totals_are_of_all_or_of_what_is_shown(graph: tf.Graph) -> None:
    builder = BUILDER().with_node_names(show_name_regexes=["conv/w"]).with_empty_output()
    every = tf.profiler.profile(graph, options=builder.build())
    shown = tf.profiler.profile(graph, options=builder.account_displayed_op_only(True).build())
    # The placeholder says its shape as well, and counts as it does in TensorFlow.
    assert every.total_parameters == 432 + 2 * 8 * 8 * 3
    assert shown.total_parameters == 108


def test_graphs_may_be_deeper_than_python_recurses() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        for _ in range(1500):
            x = tf.negative(x)
        options = BUILDER(BUILDER.float_operation()).with_empty_output().build()
        assert tf.profiler.profile(graph, cmd="graph", options=options).total_float_ops == 3000


def test_builders_leave_the_options_they_begin_with(graph: tf.Graph) -> None:
    preset = BUILDER.float_operation()
    built = BUILDER(preset).order_by("params").select(["params"]).with_min_parameters(5)
    built = built.with_min_memory(1, 2, 3, 4).with_min_execution_time(5, 6, 7).with_step(8)
    options = built.with_min_occurrence(9).with_min_float_operations(10).build()
    assert preset == BUILDER.float_operation()
    assert options == preset | {
        "order_by": "params", "select": ["params"], "min_params": 5, "min_bytes": 1,
        "min_peak_bytes": 2, "min_residual_bytes": 3, "min_output_bytes": 4, "min_micros": 5,
        "min_accelerator_micros": 6, "min_cpu_micros": 7, "step": 8, "min_occurrence": 9,
        "min_float_ops": 10,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("output", "error", "told"),
    [
        ("timeline:outfile=a", tf.errors.UnimplementedError, "view 'graph' has timeline"),
        ("timeline", tf.errors.InvalidArgumentError, "timeline:outfile="),
        ("pprof:outfile=a", tf.errors.UnimplementedError, "view 'code' has pprof"),
        ("screen", tf.errors.InvalidArgumentError, "Unknown output type: screen"),
        ("file", tf.errors.InvalidArgumentError, "file:outfile="),
        ("file:name=a", tf.errors.InvalidArgumentError, "name=a"),
    ],
)
def test_outputs_that_there_are_not(
    graph: tf.Graph, output: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        tf.profiler.profile(graph, options=BUILDER.float_operation() | {"output": output})


def test_views_and_steps_that_there_are_not(graph: tf.Graph) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown cmd: tree"):
        tf.profiler.profile(graph, cmd="tree")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Step 3"):
        tf.profiler.profile(graph, options=BUILDER().with_step(3).build())
