"""`tf.contrib.cudnn_rnn`: networks against the compatible cells over the same weights."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

cudnn = tf.contrib.cudnn_rnn
TIME, BATCH, SIZE, UNITS, LAYERS = 5, 3, 4, 6, 2
KINDS = {
    "lstm": (cudnn.CudnnLSTM, lambda: cudnn.CudnnCompatibleLSTMCell(UNITS)),
    "gru": (cudnn.CudnnGRU, lambda: cudnn.CudnnCompatibleGRUCell(UNITS)),
    "tanh": (cudnn.CudnnRNNTanh, lambda: tf.nn.rnn_cell.BasicRNNCell(UNITS, tf.nn.tanh)),
    "relu": (cudnn.CudnnRNNRelu, lambda: tf.nn.rnn_cell.BasicRNNCell(UNITS, tf.nn.relu)),
}
LENGTHS = [5, 2, 3]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        tf.set_random_seed(4)
        yield


def values(*shape, seed=3):
    return np.random.RandomState(seed).uniform(-1, 1, shape)


def made(kind, direction="unidirectional", **kwargs):
    """A layer whose biases matter."""
    kwargs.setdefault("num_layers", LAYERS)
    kwargs.setdefault("bias_initializer", tf.random_uniform_initializer(-1, 1, seed=8))
    kwargs.setdefault("dtype", tf.float64)
    return KINDS[kind][0](num_units=UNITS, direction=direction, **kwargs)


def compatible(kind, bidirectional, inputs, lengths):
    """The network out of compatible cells, as programs without a GPU have it."""
    cells = [[KINDS[kind][1]() for _ in range(LAYERS)] for _ in range(1 + bidirectional)]
    if not bidirectional:
        cell = tf.nn.rnn_cell.MultiRNNCell(cells[0])
        outputs, state = tf.nn.dynamic_rnn(cell, inputs, lengths, dtype=tf.float64, time_major=True)
        return outputs, list(state)
    outputs, fw, bw = tf.contrib.rnn.stack_bidirectional_dynamic_rnn(
        *cells, inputs, dtype=tf.float64, sequence_length=lengths, time_major=True
    )
    return outputs, [state for pair in zip(fw, bw, strict=True) for state in pair]


def in_order(kind, states):
    """The cells' states as the layers have them."""
    parts = [[s.h for s in states], [s.c for s in states]] if kind == "lstm" else [states]
    return tuple(tf.stack(p) for p in parts)


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["full", "lengths"])
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_the_layer_is_one_of_the_compatible_cells(
    kind, direction, lengths, tmp_path
):
    data = values(TIME, BATCH, SIZE)
    layer = made(kind, direction)
    inputs = tf.constant(data)
    layer.build(inputs.shape)
    outputs, states = layer(inputs, sequence_lengths=lengths)
    ways = layer.num_dirs
    assert outputs.shape.as_list() == [TIME, BATCH, ways * UNITS]
    assert [s.shape.as_list() for s in states] == [[LAYERS * ways, BATCH, UNITS]] * len(states)
    (to_inputs,) = tf.gradients(tf.reduce_sum(outputs**2), inputs)
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        expected = session.run([outputs, states, to_inputs])
    with tf.Graph().as_default():
        inputs = tf.constant(data)
        outputs, states = compatible(kind, ways == 2, inputs, lengths)
        (to_inputs,) = tf.gradients(tf.reduce_sum(outputs**2), inputs)
        with tf.Session() as session:
            tf.train.Saver().restore(session, path)
            got = session.run([outputs, in_order(kind, states), to_inputs])
    for a, b in zip(tf.nest.flatten(expected), tf.nest.flatten(got), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_the_cells_is_one_of_the_layer(kind, direction, tmp_path):
    data = values(TIME, BATCH, SIZE)
    outputs, states = compatible(kind, direction == "bidirectional", tf.constant(data), None)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "cells"))
        expected = session.run([outputs, in_order(kind, states)])
    with tf.Graph().as_default():
        layer = made(kind, direction)
        inputs = tf.constant(data)
        layer.build(inputs.shape)
        results = layer(inputs)
        with tf.Session() as session:
            tf.train.Saver([layer.saveable]).restore(session, path)
            got = session.run(results)
    for a, b in zip(tf.nest.flatten(expected), tf.nest.flatten(got), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_the_parameters_are_those_of_differences(kind):
    layer = made(kind, "bidirectional")
    inputs = tf.constant(values(TIME, BATCH, SIZE))
    outputs, states = layer(inputs, sequence_lengths=LENGTHS)
    loss = tf.reduce_sum(outputs**2) + sum(tf.reduce_sum(tf.sin(s)) for s in states)
    (variable,) = tf.trainable_variables()
    (gradient,) = tf.gradients(loss, variable)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        at, exact = session.run([variable, gradient])
        fed = tf.placeholder(tf.float64, at.shape)
        assign = variable.assign(fed).op
        for seed in range(4):
            way = values(*at.shape, seed=seed)
            sides = []
            for step in (1e-6, -1e-6):
                session.run(assign, {fed: at + step * way})
                sides.append(session.run(loss))
            slope = (sides[0] - sides[1]) / 2e-6
            np.testing.assert_allclose(np.sum(exact * way), slope, rtol=1e-6)


def test_a_whole_saver_restores_what_it_saved(tmp_path):
    layer = made("gru")
    outputs, _ = layer(tf.constant(values(TIME, BATCH, SIZE)))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(outputs)
        path = saver.save(session, str(tmp_path / "model"))
        session.run(layer.kernel.assign(tf.zeros_like(layer.kernel)))
        saver.restore(session, path)
        np.testing.assert_allclose(session.run(outputs), before, rtol=1e-12)
        once = session.run(layer.kernel)
        # What the cells have is read last, whose one bias for two is halved, and stays so.
        biases = once[-12 * UNITS :].reshape(4, 3 * UNITS)
        np.testing.assert_array_equal(biases[0, : 2 * UNITS], biases[1, : 2 * UNITS])
        saver.restore(session, saver.save(session, str(tmp_path / "model")))
        np.testing.assert_array_equal(session.run(layer.kernel), once)
    keys = [name for name, _ in tf.train.list_variables(path)]
    cell = "cudnn_gru/rnn/multi_rnn_cell/cell_1/cudnn_compatible_gru_cell"
    assert f"{cell}/candidate/hidden_projection/bias" in keys
    assert "cudnn_gru/opaque_kernel" in keys


@pytest.mark.parametrize("layers", [1, LAYERS])
@pytest.mark.parametrize("kind", KINDS)
def test_an_object_based_checkpoint_is_one_of_the_cells(kind, layers, tmp_path):
    data = values(TIME, BATCH, SIZE)
    layer = made(kind, num_layers=layers)
    outputs, _ = layer(tf.constant(data))
    checkpoint = tf.train.Checkpoint(net=layer)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = checkpoint.save(str(tmp_path / "objects"), session=session)
        expected = session.run(outputs)
        session.run(layer.kernel.assign(tf.zeros_like(layer.kernel)))
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        np.testing.assert_allclose(session.run(outputs), expected, rtol=1e-12)
    stacked = tf.nn.rnn_cell.MultiRNNCell([KINDS[kind][1]() for _ in range(layers)])
    for cell in [stacked, KINDS[kind][1]()][: 3 - layers]:
        outputs, _ = tf.nn.dynamic_rnn(
            cell, tf.constant(data), dtype=tf.float64, time_major=True, scope=type(cell).__name__
        )
        status = tf.train.Checkpoint(net=cell).restore(path)
        with tf.Session() as session:
            status.assert_existing_objects_matched().run_restore_ops(session)
            np.testing.assert_allclose(session.run(outputs), expected, rtol=1e-10)


def test_a_bidirectional_layer_is_an_object_with_its_variable(tmp_path):
    layer = made("gru", "bidirectional")
    outputs, _ = layer(tf.constant(values(TIME, BATCH, SIZE)))
    checkpoint = tf.train.Checkpoint(net=layer)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = checkpoint.save(str(tmp_path / "objects"), session=session)
        expected = session.run(outputs)
        session.run(layer.kernel.assign(tf.zeros_like(layer.kernel)))
        checkpoint.restore(path).assert_consumed().run_restore_ops(session)
        np.testing.assert_array_equal(session.run(outputs), expected)


def test_the_size_of_the_inputs_may_be_known_at_the_first_call_alone():
    layer = made("gru")
    first, _ = layer(tf.constant(values(TIME, BATCH, SIZE)))
    later = tf.placeholder(tf.float64, [None, None, None])
    again, _ = layer(later)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feeds = {later: values(TIME, BATCH, SIZE)}
        np.testing.assert_allclose(*session.run([first, again], feeds), rtol=1e-10)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(again, {later: values(TIME, BATCH, 2 * SIZE)})


def test_a_saveable_is_made_once():
    layer = made("lstm")
    layer.build([None, None, SIZE])
    with pytest.raises(RuntimeError, match="Cudnn saveable already created"):
        layer._create_saveable()


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_batch_first_is_time_first_turned(kind):
    layer = made(kind, "bidirectional")
    data = values(TIME, BATCH, SIZE)
    count = 2 if kind == "lstm" else 1
    starts = tuple(values(2 * LAYERS, BATCH, UNITS, seed=i) for i in range(count))
    time_first = layer(tf.constant(data), starts)
    turned = tuple(s.transpose(1, 0, 2) for s in starts)
    batch_first = layer(tf.constant(data.transpose(1, 0, 2)), turned, time_major=False)
    of_none = layer(tf.placeholder_with_default(data.transpose(1, 0, 2), [None, None, SIZE]),
                    time_major=False)  # fmt: skip
    assert of_none[0].shape.as_list() == [None, None, 2 * UNITS]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second, zero = session.run([time_first, batch_first, of_none])
        plain = session.run(layer(tf.constant(data)))
    for a, b in zip(tf.nest.flatten(first), tf.nest.flatten(second), strict=True):
        np.testing.assert_allclose(a, b.transpose(1, 0, 2), rtol=1e-12)
    for a, b in zip(tf.nest.flatten(plain), tf.nest.flatten(zero), strict=True):
        np.testing.assert_allclose(a, b.transpose(1, 0, 2), rtol=1e-12)


def test_inputs_that_are_skipped_are_added_to_the_gates():
    data = values(TIME, BATCH, UNITS)
    skip = made("tanh", num_layers=1, input_mode="skip_input")
    auto = made("tanh", num_layers=1, input_mode="auto_select")
    results = [skip(tf.constant(data))[0], auto(tf.constant(data))[0]]
    assert skip.canonical_weight_shapes == [(UNITS, UNITS)] == auto.canonical_weight_shapes
    assert skip.saveable is None
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        (got, _), buffer = session.run([results, skip.kernel])
    past, bias = buffer[: UNITS * UNITS].reshape(UNITS, UNITS), buffer[UNITS * UNITS :]
    h = np.zeros([BATCH, UNITS])
    for step in range(TIME):
        h = np.tanh(data[step] + h @ past.T + bias[:UNITS] + bias[UNITS:])
        np.testing.assert_allclose(got[step], h, rtol=1e-10)
    linear = made("tanh", input_mode="auto_select")
    linear.build([TIME, BATCH, SIZE])
    assert linear.canonical_weight_shapes[0] == (UNITS, SIZE)


def test_dropout_is_between_layers_and_in_training_alone():
    data = tf.constant(values(TIME, BATCH, SIZE))
    one, two = made("gru", num_layers=1, dropout=0.5), made("gru", dropout=0.5, seed=5)
    training = tf.placeholder(tf.bool, [])
    fed = two(data, training=training)[0]
    fetches = [
        one(data)[0], one(data, training=False)[0],
        two(data, training=False)[0], fed,
    ]  # fmt: skip
    nothing, bias = made("tanh", dropout=1.0)(data)[0], made("tanh", dropout=1.0)(0 * data)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        single, single_off, off, fed_off = session.run(fetches, {training: False})
        fed_on = session.run(fed, {training: True})
        assert np.isfinite(session.run([nothing, bias])).all()
    np.testing.assert_array_equal(single, single_off)
    np.testing.assert_array_equal(off, fed_off)
    assert np.abs(fed_on - off).max() > 1e-3


def test_layers_train_and_share_their_variable():
    data = tf.constant(values(TIME, BATCH, SIZE).astype(np.float32))
    with tf.variable_scope("net", partitioner=tf.fixed_size_partitioner(2)):
        first = cudnn.CudnnLSTM(1, UNITS)(data)[0]
    with tf.variable_scope("net", reuse=True):
        second = cudnn.CudnnLSTM(1, UNITS, name="cudnn_lstm")(data)[0]
    assert [v.op.name for v in tf.global_variables()] == ["net/cudnn_lstm/opaque_kernel"]
    assert len(tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)) == 1
    loss = tf.reduce_mean((first - 0.3) ** 2)
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before, a, b = session.run([loss, first, second])
        np.testing.assert_array_equal(a, b)
        for _ in range(30):
            session.run(step)
        assert session.run(loss) < 0.2 * before


def test_each_matrix_is_initialized_by_its_own_fans():
    layer = cudnn.CudnnGRU(2, UNITS, direction="bidirectional")
    layer.build([None, None, SIZE])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        buffer = session.run(layer.kernel)
    assert len(layer.canonical_weight_shapes) == len(layer.canonical_bias_shapes) == 24
    at = 0
    for rows, columns in layer.canonical_weight_shapes:
        part = buffer[at : at + rows * columns]
        limit = np.sqrt(6 / (rows + columns))
        assert 0.8 * limit < np.abs(part).max() <= limit
        at += rows * columns
    np.testing.assert_array_equal(buffer[at:], np.zeros(24 * UNITS))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="Invalid direction"):
        cudnn.CudnnGRU(1, 2, direction="both")
    with pytest.raises(ValueError, match="Invalid input_mode"):
        cudnn.CudnnGRU(1, 2, input_mode="none")
    with pytest.raises(ValueError, match="Only support"):
        cudnn.CudnnGRU(1, 2, dtype=tf.int32)
    with pytest.raises(ValueError, match="needs inputs of the size"):
        cudnn.CudnnGRU(1, 2, input_mode="skip_input").build([1, 1, 3])
    with pytest.raises(ValueError, match="last dimension"):
        cudnn.CudnnGRU(1, 2).build([1, 1, None])
    layer = cudnn.CudnnLSTM(1, 2)
    with pytest.raises(RuntimeError, match="before input shape is known"):
        _ = layer.canonical_weight_shapes
    with pytest.raises(TypeError, match="expecting tuple"):
        layer(tf.zeros([1, 1, 3]), [tf.zeros([1, 1, 2])] * 2)
    with pytest.raises(ValueError, match="has 2 tensors, not 1"):
        layer(tf.zeros([1, 1, 3]), (tf.zeros([1, 1, 2]),))
    with pytest.raises(tf.errors.UnimplementedError, match="projections"):
        cudnn.CudnnParamsFormatConverterLSTM(1, 2, 3, num_proj=4)
    with pytest.raises(tf.errors.UnimplementedError, match="no compatible cell"):
        cudnn.CudnnParamsFormatConverterLSTM(1, 2, 2, input_mode="skip_input")


def test_programs_that_hold_the_buffer_have_the_same_networks():
    from opdock.contrib.cudnn_rnn import functions

    data = tf.constant(values(TIME, BATCH, SIZE))
    for kind, old in {
        "lstm": functions.CudnnLSTM,
        "gru": functions.CudnnGRU,
        "tanh": functions.CudnnRNNTanh,
        "relu": functions.CudnnRNNRelu,
    }.items():
        layer = made(kind, "bidirectional")
        outputs, states = layer(data)
        network = old(LAYERS, UNITS, SIZE, direction="bidirectional", dtype=tf.float64)
        start = [tf.zeros([2 * LAYERS, BATCH, UNITS], tf.float64)] * len(states)
        buffer = tf.Variable(
            tf.random_uniform([network.params_size()], -0.1, 0.1, tf.float64), validate_shape=False
        )
        filled = buffer.assign(layer.kernel)
        by_class = network(data, *start, buffer, is_training=False)
        name = f"cudnn_{kind}" if kind in ("lstm", "gru") else f"cudnn_rnn_{kind}"
        function = getattr(functions, name)
        by_function = function(data, *start, buffer, False, direction="bidirectional")
        canonical = network.params_to_canonical(layer.kernel)
        again = network.canonical_to_params(*canonical)
        shapes = [tuple(t.shape.as_list()) for part in canonical for t in part]
        assert shapes == layer.canonical_weight_shapes + layer.canonical_bias_shapes
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(filled)
            wanted, kernel = session.run([[outputs, *states], layer.kernel])
            got, same, packed = session.run([by_class, by_function, again])
        np.testing.assert_array_equal(packed, kernel)
        for a, b, c in zip(wanted, got, same, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
            np.testing.assert_array_equal(b, c)


def test_functions_refuse_what_they_do_not_compute():
    from opdock.contrib.cudnn_rnn import functions

    with pytest.raises(ValueError, match="Invalid rnn_mode"):
        functions.cudnn_rnn_opaque_params_size("lstms", 1, 2, 3)
    with pytest.raises(tf.errors.UnimplementedError, match="projections"):
        functions.CudnnLSTM(1, 2, 3, num_proj=2)
    with pytest.raises(ValueError, match="must be known"):
        unknown = tf.placeholder(tf.float32, [None, None, 2])
        functions.cudnn_gru(tf.zeros([1, 1, 3]), unknown, tf.zeros([1]), True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 weights and 2 biases, not 1 and 2"):
        functions.cudnn_rnn_canonical_to_opaque_params(
            "rnn_tanh", 1, 2, 3, [tf.zeros([2, 3])], [tf.zeros([2])] * 2
        )
    size = functions.cudnn_rnn_opaque_params_size("lstm", 2, 3, 4, direction="bidirectional")
    weights, biases = functions.cudnn_rnn_opaque_params_to_canonical(
        "lstm", 2, 3, 4, tf.zeros([size]), direction="bidirectional"
    )
    with tf.Session() as session:
        assert session.run(size) == sum(
            int(np.prod(t.shape.as_list())) for t in [*weights, *biases]
        )


def test_a_layer_first_called_in_a_loop_is_saved(tmp_path):
    layer = made("gru", num_layers=1, name="net")
    start = tf.constant(values(TIME, BATCH, UNITS))
    _, looped = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, layer(x)[0]), [0, start])
    plain = layer(layer(start)[0])[0]
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
        before = session.run(looped)
        session.run(layer.kernel.assign(tf.zeros_like(layer.kernel)))
        saver.restore(session, path)
        np.testing.assert_allclose(session.run(looped), before, rtol=1e-12)
        np.testing.assert_allclose(session.run(plain), before, rtol=1e-10)
    cell = "net/rnn/multi_rnn_cell/cell_0/cudnn_compatible_gru_cell/gates/kernel"
    assert cell in dict(tf.train.list_variables(path))
