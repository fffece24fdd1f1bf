"""`tf.contrib.rnn`: cells against their formulas, wrappers, fused cells, stacked networks."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

rnn = tf.contrib.rnn
RNG = np.random.RandomState(2)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        tf.set_random_seed(4)
        yield


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


CELLS = {
    "LayerNormBasicLSTMCell": lambda: rnn.LayerNormBasicLSTMCell(6, dropout_keep_prob=0.9),
    "LayerNorm-off": lambda: rnn.LayerNormBasicLSTMCell(6, layer_norm=False),
    "NASCell": lambda: rnn.NASCell(6, num_proj=4, use_bias=True),
    "UGRNNCell": lambda: rnn.UGRNNCell(6),
    "IntersectionRNNCell": lambda: rnn.IntersectionRNNCell(6, num_in_proj=6),
    "CoupledInputForgetGateLSTMCell": lambda: rnn.CoupledInputForgetGateLSTMCell(
        6, use_peepholes=True, num_proj=4, proj_clip=0.5, num_unit_shards=2, layer_norm=True
    ),
    "LayerNormLSTMCell": lambda: rnn.LayerNormLSTMCell(
        6, use_peepholes=True, num_proj=4, cell_clip=1.0, proj_clip=0.5, layer_norm=True
    ),
    "WeightNormLSTMCell": lambda: rnn.WeightNormLSTMCell(6, use_peepholes=True, num_proj=4),
    "GridLSTMCell": lambda: rnn.GridLSTMCell(
        3,
        use_peepholes=True,
        cell_clip=1.0,
        feature_size=2,
        frequency_skip=1,
        num_frequency_blocks=[3],
    ),
    "GridLSTM-shared": lambda: rnn.GridLSTMCell(
        3,
        share_time_frequency_weights=True,
        couple_input_forget_gates=True,
        feature_size=1,
        frequency_skip=1,
        num_frequency_blocks=[2, 1],
        start_freqindex_list=[0, 3],
        end_freqindex_list=[2, 4],
        num_unit_shards=2,
    ),
    "BidirectionalGridLSTMCell": lambda: rnn.BidirectionalGridLSTMCell(
        3, feature_size=2, frequency_skip=2, num_frequency_blocks=[2], backward_slice_offset=1
    ),
    "TimeFreqLSTMCell": lambda: rnn.TimeFreqLSTMCell(
        3, use_peepholes=True, cell_clip=1.0, feature_size=4
    ),
    "GLSTMCell": lambda: rnn.GLSTMCell(6, num_proj=4, number_of_groups=2),
    "SRUCell": lambda: rnn.SRUCell(4),
    "CFNCell": lambda: rnn.CFNCell(6),
    "MinimalRNNCell": lambda: rnn.MinimalRNNCell(6),
    "NTMCell": lambda: rnn.NTMCell(rnn.LSTMCell(6), 5, 3, 2, 1, output_dim=4),
    "IndRNNCell": lambda: rnn.IndRNNCell(6),
    "IndyGRUCell": lambda: rnn.IndyGRUCell(6),
    "IndyLSTMCell": lambda: rnn.IndyLSTMCell(6),
    "LSTMBlockCell": lambda: rnn.LSTMBlockCell(6, use_peephole=True, cell_clip=1.0),
    "GRUBlockCellV2": lambda: rnn.GRUBlockCellV2(6),
    "AttentionCellWrapper": lambda: rnn.AttentionCellWrapper(rnn.LSTMCell(6), 3),
    "OutputProjectionWrapper": lambda: rnn.OutputProjectionWrapper(rnn.GRUCell(6), 5),
    "InputProjectionWrapper": lambda: rnn.InputProjectionWrapper(rnn.GRUCell(6), 5),
    "HighwayWrapper": lambda: rnn.HighwayWrapper(rnn.GRUCell(4)),
    "CompiledWrapper": lambda: rnn.CompiledWrapper(rnn.GRUCell(6)),
}


@pytest.mark.parametrize("name", CELLS)
def test_every_cell_runs_in_a_loop_and_learns(name: str) -> None:
    inputs = tf.constant(RNG.randn(3, 5, 4), tf.float32)
    cell = CELLS[name]()
    outputs, state = tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32, sequence_length=[5, 2, 0])
    assert outputs.shape.as_list()[2] == cell.output_size
    weights = tf.trainable_variables()
    # With normalization a bias is made, as TF makes it, and not used.
    slopes = [g for g in tf.gradients(tf.reduce_sum(outputs), weights) if g is not None]
    got, found, *_ = run([outputs, slopes, state])
    assert (got[1, 2:] == 0).all() and (got[2] == 0).all() and (got[0] != 0).any()
    assert len(found) >= len(weights) - 1 > 0
    assert all(np.isfinite(g).all() for g in found)


def test_layer_norm_basic_lstm_is_its_formula() -> None:
    x, c, h = (RNG.randn(2, n).astype(np.float32) for n in (3, 4, 4))
    cell = rnn.LayerNormBasicLSTMCell(4, norm_gain=0.5, norm_shift=0.1)
    out, state = cell(tf.constant(x), rnn.LSTMStateTuple(tf.constant(c), tf.constant(h)))
    kernel = next(v for v in tf.trainable_variables() if v.op.name.endswith("kernel"))
    weights, got, new = run([kernel, out, state])

    def norm(v):
        spread = np.sqrt(v.var(-1, keepdims=True))
        return 0.5 * (v - v.mean(-1, keepdims=True)) / spread + 0.1

    i, j, f, o = map(norm, np.split(np.concatenate([x, h], 1) @ weights, 4, 1))
    memory = norm(c * sigmoid(f + 1.0) + sigmoid(i) * np.tanh(j))
    np.testing.assert_allclose(new.c, memory, atol=1e-5)
    np.testing.assert_allclose(got, np.tanh(memory) * sigmoid(o), atol=1e-5)
    names = {v.op.name for v in tf.trainable_variables()}
    assert "layer_norm_basic_lstm_cell/input/gamma" in names


def test_names_of_variables_are_those_of_checkpoints() -> None:
    x = tf.zeros([2, 3])
    rnn.GRUBlockCell(4)(x, tf.zeros([2, 4]))
    rnn.LSTMBlockFusedCell(4, use_peephole=True)(tf.zeros([5, 2, 3]), dtype=tf.float32)
    rnn.OutputProjectionWrapper(rnn.GRUCell(4), 2)(x, tf.zeros([2, 4]))
    assert {v.op.name for v in tf.global_variables()} == {
        "gru_cell/w_ru", "gru_cell/b_ru", "gru_cell/w_c", "gru_cell/b_c",
        "lstm_fused_cell/kernel", "lstm_fused_cell/bias", "lstm_fused_cell/w_i_diag",
        "lstm_fused_cell/w_f_diag", "lstm_fused_cell/w_o_diag",
        "output_projection_wrapper/kernel", "output_projection_wrapper/bias",
        "output_projection_wrapper/gru_cell/gates/kernel",
        "output_projection_wrapper/gru_cell/gates/bias",
        "output_projection_wrapper/gru_cell/candidate/kernel",
        "output_projection_wrapper/gru_cell/candidate/bias",
    }  # fmt: skip


def test_the_fused_cell_computes_what_the_plain_one_does() -> None:
    x = RNG.randn(5, 2, 3).astype(np.float32)
    make = tf.constant_initializer(0.1)
    with tf.variable_scope("one", initializer=make):
        fused, last = rnn.LSTMBlockFusedCell(4)(
            tf.constant(x), dtype=tf.float32, sequence_length=[5, 3]
        )
    with tf.variable_scope("two", initializer=make):
        adapted = rnn.FusedRNNCellAdaptor(rnn.BasicLSTMCell(4), use_dynamic_rnn=True)
        plain, state = adapted(tf.constant(x), dtype=tf.float32, sequence_length=[5, 3])
    a, b, c, d = run([fused, plain, last, state])
    np.testing.assert_allclose(a, b, rtol=1e-5)
    np.testing.assert_allclose(c.c, d.c, rtol=1e-5)
    turned, _ = rnn.TimeReversedFusedRNN(adapted)(tf.constant(x), dtype=tf.float32, scope="three")
    assert turned.shape.as_list() == [5, 2, 4]
    with tf.variable_scope("four", initializer=make):
        back = rnn.TimeReversedFusedRNN(rnn.LSTMBlockFusedCell(4))
        backward, _ = back(tf.constant(x), dtype=tf.float32, sequence_length=[5, 3])
    with tf.variable_scope("one", reuse=True):
        around = tf.reverse_sequence(x, [5, 3], seq_axis=0, batch_axis=1)
        forward, _ = rnn.LSTMBlockFusedCell(4)(around, dtype=tf.float32, sequence_length=[5, 3])
    e, f = run([backward, tf.reverse_sequence(forward, [5, 3], seq_axis=0, batch_axis=1)])
    np.testing.assert_array_equal(e, f)


def test_stacked_networks_go_both_ways() -> None:
    x = tf.constant(RNG.randn(2, 4, 3), tf.float32)
    fw, bw = ([rnn.GRUCell(5), rnn.GRUCell(6)] for _ in range(2))
    out, last_fw, last_bw = rnn.stack_bidirectional_dynamic_rnn(
        fw, bw, x, dtype=tf.float32, sequence_length=[4, 2]
    )
    assert out.shape.as_list() == [2, 4, 12] and len(last_fw) == len(last_bw) == 2
    names = [v.op.name for v in tf.trainable_variables()]
    assert "stack_bidirectional_rnn/cell_1/bidirectional_rnn/bw/gru_cell/gates/kernel" in names
    got, last = run([out, last_fw[-1]])
    np.testing.assert_allclose(got[1, 1, :6], last[1], rtol=1e-6)
    steps, *_ = rnn.stack_bidirectional_rnn(
        [rnn.GRUCell(5)], [rnn.GRUCell(5)], tf.unstack(x, axis=1), dtype=tf.float32, scope="s"
    )
    assert len(steps) == 4 and steps[0].shape.as_list() == [2, 10]
    with pytest.raises(ValueError, match="same depth"):
        rnn.stack_bidirectional_dynamic_rnn(fw, bw[:1], x, dtype=tf.float32)
    with pytest.raises(ValueError, match="at least one fw cell"):
        rnn.stack_bidirectional_rnn([], bw, [x])


def test_phased_lstm_stays_as_it_is_while_its_units_are_closed() -> None:
    cell = rnn.PhasedLSTMCell(
        3, leak=0.0, ratio_on=1e-6, period_init_min=10.0, period_init_max=11.0
    )
    state = rnn.LSTMStateTuple(tf.ones([2, 3]), tf.ones([2, 3]))
    out, new = cell((tf.constant([[3.0], [4.0]]), tf.zeros([2, 1])), state)
    got, after = run([out, new])
    np.testing.assert_allclose(got, np.ones((2, 3)), atol=1e-6)
    np.testing.assert_allclose(after.c, np.ones((2, 3)), atol=1e-6)


def test_convolutional_cells_keep_their_space() -> None:
    cell = rnn.Conv2DLSTMCell(
        input_shape=[4, 5, 2], output_channels=3, kernel_shape=[3, 3], skip_connection=True
    )
    x = tf.constant(RNG.randn(2, 6, 4, 5, 2), tf.float32)
    out, state = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    assert out.shape.as_list() == [2, 6, 4, 5, 5]
    got, last = run([out, state])
    np.testing.assert_allclose(got[:, -1, ..., :3], last.h)
    with pytest.raises(ValueError, match="conv_ndims=1"):
        rnn.Conv1DLSTMCell(input_shape=[4, 5, 2], output_channels=3, kernel_shape=[3])


def test_embedding_wrapper_and_what_is_no_cell() -> None:
    out, _ = rnn.EmbeddingWrapper(rnn.GRUCell(4), 7, 3)(tf.constant([1, 2]), tf.zeros([2, 4]))
    assert out.shape.as_list() == [2, 4]
    with pytest.raises(TypeError, match="is not an RNNCell"):
        rnn.OutputProjectionWrapper(None, 3)
    with pytest.raises(ValueError, match="must be > 0: 0"):
        rnn.OutputProjectionWrapper(rnn.GRUCell(4), 0)
    with pytest.raises(ValueError, match="divisible by number_of_groups"):
        rnn.GLSTMCell(5, number_of_groups=2)
    with pytest.raises(ValueError, match="greater than zero, got 0"):
        rnn.AttentionCellWrapper(rnn.GRUCell(4), 0)


def test_a_grid_has_tensorflows_variables_and_numbers() -> None:
    with tf.variable_scope("root", initializer=tf.constant_initializer(0.5)):
        x = tf.constant([[1.0, 1, 1, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2, 2, 2]])
        cell = rnn.GridLSTMCell(
            2, feature_size=4, frequency_skip=4, num_frequency_blocks=[2], use_peepholes=True
        )
        state = cell.state_tuple_type(*[tf.constant([[0.1, 0.2], [0.3, 0.4]])] * 4)
        outputs, new = cell(x, state)
    prefix = "root/grid_lstm_cell"
    names = [v.op.name for v in tf.global_variables()]
    assert names[:4] == [f"{prefix}/{n}_0" for n in ("W_f_0", "B_f", "W_t_0", "B_t")]
    assert names[4:6] == [f"{prefix}/W_F_diag_freq{to}_0" for to in "ft"]
    assert new._fields == tuple(f"state_f{band:02d}_b00_{part}" for band in (0, 1) for part in "cm")
    assert [outputs.shape.as_list(), cell.output_size] == [[2, 8], 8]
    # One band by hand: all kernels are 0.5, the bias is 0.
    c, m, before = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.1, 0.2], [0.3, 0.4]]), 0.0
    total = 0.5 * (np.array([[4.0], [8.0]]) + m.sum(1, keepdims=True))
    seen = 0.5 * (before + c)
    freq = sigmoid(total + seen) * np.tanh(total)
    time = sigmoid(total + 1 + seen) * c + sigmoid(total + seen) * np.tanh(total)
    gate = sigmoid(total + 0.5 * (freq + time))
    found = run([outputs, new])
    np.testing.assert_allclose(found[0][:, :2], gate * np.tanh(time), rtol=1e-5)
    np.testing.assert_allclose(found[0][:, 2:4], gate * np.tanh(freq), rtol=1e-5)
    np.testing.assert_allclose(found[1][0], time, rtol=1e-5)


def test_a_grid_refuses_blocks_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="Must specify num_frequency_blocks"):
        rnn.GridLSTMCell(2)
    cell = rnn.GridLSTMCell(2, feature_size=2, frequency_skip=2, num_frequency_blocks=[3])
    with pytest.raises(ValueError, match="requires 3 but gets 2"):
        cell(tf.ones([1, 4]), cell.zero_state(1, tf.float32))


def test_weights_have_lengths_of_their_own() -> None:
    cell = rnn.WeightNormLSTMCell(2, initializer=tf.constant_initializer(3.0))
    x = tf.constant([[1.0, 2.0, 3.0]])
    output, _ = cell(x, rnn.LSTMStateTuple(tf.ones([1, 2]), tf.ones([1, 2])))
    # Columns of length 1, times 3: of the three inputs, and of the two units.
    total = 3 * (6 / np.sqrt(3) + 2 / np.sqrt(2))
    c = sigmoid(total + 1) + sigmoid(total) * np.tanh(total)
    np.testing.assert_allclose(run(output), [[sigmoid(total) * np.tanh(c)] * 2], rtol=1e-5)


def test_the_size_of_a_batch_is_an_int_where_a_tensor_says() -> None:
    known, unknown = tf.zeros([5, 3, 2]), tf.placeholder(tf.float32, [None, None, 2])
    shapeless = tf.placeholder(tf.float32)
    assert rnn.best_effort_input_batch_size([shapeless, unknown, known]) == 3
    batch = rnn.best_effort_input_batch_size([unknown])
    assert run(batch, {unknown: np.zeros([4, 7, 2])}) == 7
    with pytest.raises(ValueError, match="rank at least 2"):
        rnn.best_effort_input_batch_size([tf.zeros([3])])
