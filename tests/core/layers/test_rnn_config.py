"""What cells and the cells around them say of themselves, and what is made of it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

import opdock as tf

CELLS = {
    "basic": lambda: tf.nn.rnn_cell.BasicRNNCell(3, activation="relu"),
    "gru": lambda: tf.nn.rnn_cell.GRUCell(3, kernel_initializer=tf.ones_initializer()),
    "basic_lstm": lambda: tf.nn.rnn_cell.BasicLSTMCell(3, forget_bias=0.5),
    "lstm": lambda: tf.nn.rnn_cell.LSTMCell(
        3, use_peepholes=True, cell_clip=2.0, num_proj=2,
        initializer=tf.random_uniform_initializer(-0.5, 0.5, seed=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("make", CELLS.values(), ids=CELLS)
def test_a_cell_is_made_again(make: Any) -> None:
    cell = make()
    config = json.loads(json.dumps(cell.get_config()))
    again = type(cell).from_config(config)
    assert again.get_config() == cell.get_config()
    x = tf.ones([2, 4])
    results = []
    for i, each in enumerate((cell, again)):
        with tf.variable_scope(f"cell{i}"):
            results.append(each(x, each.zero_state(2, tf.float32))[0])
    assert results[0].shape == results[1].shape
    if type(cell) in (tf.nn.rnn_cell.LSTMCell, tf.nn.rnn_cell.GRUCell):  # seeded, or constant
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            first, second = session.run(results)
        assert first.tolist() == second.tolist()


@pytest.mark.parametrize(
    "wrap",
    [
        lambda cell: tf.nn.rnn_cell.DropoutWrapper(
            cell, 0.5, 0.25, 0.75, variational_recurrent=True, input_size=4, dtype=tf.float32,
            seed=3, name="around",
        ),
        tf.nn.rnn_cell.ResidualWrapper,
        lambda cell: tf.nn.rnn_cell.DeviceWrapper(cell, "/device:CPU:0"),
    ],
    ids=["dropout", "residual", "device"],
)  # fmt: skip
def test_a_wrapper_is_made_again_around_a_cell(wrap: Any) -> None:
    wrapper = wrap(CELLS["gru"]())
    config = wrapper.get_config()
    assert json.loads(json.dumps(config)) == config
    with pytest.raises(ValueError, match="overwrite the cell in the config"):
        type(wrapper).from_config(config)
    cell = tf.nn.rnn_cell.GRUCell.from_config(config["cell"]["config"])
    assert type(wrapper).from_config({**config, "cell": cell}).get_config() == config


def test_stacked_cells_say_what_they_are() -> None:
    stacked = tf.nn.rnn_cell.MultiRNNCell([CELLS["basic"](), CELLS["gru"]()])
    names = [c["class_name"] for c in stacked.get_config()["cells"]]
    assert names == ["BasicRNNCell", "GRUCell"]


@pytest.mark.parametrize("kind, name", [
    (tf.nn.rnn_cell.ResidualWrapper, "residual_fn"),
    (tf.nn.rnn_cell.DropoutWrapper, "dropout_state_filter_visitor"),
])  # fmt: skip
def test_functions_of_a_wrapper_are_in_its_configuration(kind: Any, name: str) -> None:
    def function(*given: Any) -> Any:
        return given[-1]

    cell = CELLS["gru"]()
    config = kind(cell, **{name: function}).get_config()
    assert config[name] is function
    assert kind.from_config({**config, "cell": cell}).get_config() == config
    named = {**config, "cell": cell, name: "mine"}
    assert kind.from_config(named, custom_objects={"mine": function}).get_config() == config
    with pytest.raises(TypeError, match="give the function itself"):
        kind.from_config(named)
