"""`tf.contrib.specs`: what texts make, and what summaries tell of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import opdock as tf

specs = tf.contrib.specs


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _run(tensor: tf.Tensor) -> np.ndarray:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(tensor)


@pytest.mark.parametrize(
    ("spec", "factor"),
    [
        ("net = double | double", 4.0),
        ("net = double ** 3", 8.0),
        ("net = double ** 0 | double", 2.0),
        ("net = double + Id", 3.0),
        ("net = double * Idx() + double", 4.0),
        ("net = (double | double) + double ** 1", 6.0),
    ],
)
def test_functions_are_put_together(spec: str, factor: float) -> None:
    double = specs.Function(lambda x: x * 2.0)
    made = specs.create_net(spec, tf.constant(1.0), {"double": double})
    assert _run(made) == factor
    with pytest.raises(ValueError, match="0 times or more"):
        double**-1


def test_arguments_are_given_bit_by_bit() -> None:
    told = specs.Function(lambda x, *args, **kw: (x, args, kw))
    assert told(1, a=2)(a=3).funcall(0) == (0, (1,), {"a": 3})
    assert told(2)(1).funcall(0) == (0, (1, 2), {})
    assert told(_1=5)(4).funcall(0) == (0, (4, 5), {})
    assert told(_0=5)(4).funcall(0) == (0, (4,), {})
    assert specs.get_positional([4], {"_0": 5, "a": 1}, True) == ([5], {"a": 1})
    with pytest.raises(ValueError, match="is not callable"):
        specs.Function(3)


def test_a_network_is_that_of_its_layers() -> None:
    pixels = np.random.default_rng(1).normal(size=(2, 8, 8, 3)).astype(np.float32)
    spec = "C = Cr(_1=[3, 3]); net = (C(4) | Mp([2, 2])) ** 2 | Flat | Conc(1, Fs(5), Fl(2))"
    out = specs.create_net(spec, tf.constant(pixels))
    assert out.shape.as_list() == [2, 7]
    kernels = [v.shape.as_list() for v in tf.trainable_variables() if len(v.shape) > 1]
    assert kernels == [[3, 3, 3, 4], [3, 3, 4, 4], [16, 5], [16, 2]]
    found = _run(out)
    assert ((found[:, :5] > 0) & (found[:, :5] < 1)).all()


@pytest.mark.parametrize(
    "name", ["Relu", "Sig", "Tanh", "Smax", "Unit(1)", "Bn", "Do(0.5)", "Fm(4)"]
)
def test_words_are_functions_of_matrices(name: str) -> None:
    out = specs.create_net(f"net = {name}", tf.ones([3, 4]))
    assert _run(out).shape == (3, 4)


def test_variables_are_shared_where_it_is_said() -> None:
    shared = specs.eval_spec("f = Shared(Fr(6)); net = f | f | f; v = Var('v', shape=[2])")
    shared["net"].funcall(tf.ones([2, 6]))
    assert len(tf.global_variables()) == 2
    assert shared["v"].funcall(None).name == "v:0"
    with pytest.raises(ValueError, match="cannot provide both"):
        specs.Shared(specs.Id, "a", tf.get_variable_scope())
    with pytest.raises(ValueError, match="VariableScope"):
        specs.Shared(specs.Id, scope="a")


def test_functions_come_from_elsewhere() -> None:
    text = "S = Import('import math; f = math.sqrt'); net = S | External('math', 'floor')"
    assert specs.create_net(text, 10.0) == 3
    with pytest.raises(ValueError, match="failed to define"):
        specs.Import("g = 1")


@pytest.mark.parametrize("text", ["import re", "while True: 1", "def f(): 1", "exec('1')"])
def test_specs_are_assignments(text: str) -> None:
    with pytest.raises(ValueError, match="found in spec"):
        specs.create_net(f"{text}; net = Id", 1.0)
    with pytest.raises(ValueError, match="failed to create 'net'"):
        specs.create_net("nets = Id", 1.0)


def test_parameters_are_drawn_within_bounds() -> None:
    text = "a = Ui(-2, 3); b = Uf(1, 2); c = Lf(1, 100); d = Li(1, 9); e = Nt(5, 1); f = sqrt(n)"
    for _ in range(200):
        found = specs.eval_params(text, {"n": 16})
        assert found["a"] in range(-2, 4) and found["d"] in range(1, 10) and found["f"] == 4
        assert 1 <= found["b"] <= 2 and 1 <= found["c"] <= 100 and 2 <= found["e"] <= 8


def test_summaries_tell_operations_and_parameters() -> None:
    place = tf.placeholder(tf.float32, [1, 8, 8, 3])
    out = specs.create_net("net = Cr(4, [3, 3]) | Mp([2, 2]) | Flat | Fl(2)", place)
    lines: list[str] = []
    specs.tf_parameter_summary(out, lines.append)
    numbers = [int(line.split()[0]) for line in lines]
    assert sum(numbers) == (3 * 3 * 3 * 4 + 4) + (4 * 4 * 4 * 2 + 2)
    assert specs.tf_num_params(out) == sum(numbers)
    printed: list[str] = []
    specs.tf_print(out, printer=printed.append)
    assert printed[0] == "fully_connected/BiasAdd BiasAdd [1, 2]"
    assert any("Placeholder" in line for line in printed)


def test_a_structure_has_each_operation_once() -> None:
    found = specs.tf_spec_structure("net = Fs(10) + Fr(10)", input_shape=[17, 55])
    word = "variablev2 dot variablev2 biasadd"
    assert found in (f"_ {word} sig <> {word} relu add", f"_ {word} sig <> {word} relu addv2")
    assert specs.tf_structure(tf.nn.relu(tf.zeros([2, 3])), include_shapes=True).endswith(
        " [2, 3] relu"
    )
