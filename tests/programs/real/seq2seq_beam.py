"""A sequence-to-sequence model with attention that learns to reverse digits, read by beam search."""
import numpy as np
import opdock as tf

PAD, GO, EOS, DIGITS = 0, 1, 2, 6
VOCAB, UNITS, LENGTH, BATCH, BEAM = DIGITS + 3, 48, 4, 32, 3

rng = np.random.RandomState(0)
tf.set_random_seed(1)

source = tf.placeholder(tf.int32, [None, LENGTH], name="source")
target = tf.placeholder(tf.int32, [None, LENGTH + 1], name="target")
batch_size = tf.shape(source)[0]
embedding = tf.get_variable("embedding", [VOCAB, 16])

with tf.variable_scope("encoder"):
    cell = tf.nn.rnn_cell.GRUCell(UNITS)
    encoded, state = tf.nn.dynamic_rnn(cell, tf.nn.embedding_lookup(embedding, source), dtype=tf.float32)

projection = tf.layers.Dense(VOCAB, use_bias=False, name="projection")


def decoder_cell(memory):
    attention = tf.contrib.seq2seq.LuongAttention(UNITS, memory, scale=True)
    return tf.contrib.seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(UNITS), attention, attention_layer_size=UNITS)


with tf.variable_scope("decoder"):
    cell = decoder_cell(encoded)
    start = cell.zero_state(batch_size, tf.float32).clone(cell_state=state)
    shifted = tf.concat([tf.fill([batch_size, 1], GO), target[:, :-1]], 1)
    helper = tf.contrib.seq2seq.TrainingHelper(
        tf.nn.embedding_lookup(embedding, shifted), tf.fill([batch_size], LENGTH + 1))
    decoder = tf.contrib.seq2seq.BasicDecoder(cell, helper, start, projection)
    outputs, _, lengths = tf.contrib.seq2seq.dynamic_decode(decoder)

loss = tf.contrib.seq2seq.sequence_loss(
    outputs.rnn_output, target, tf.ones_like(target, dtype=tf.float32))
train = tf.train.AdamOptimizer(0.005).minimize(loss)

with tf.variable_scope("decoder", reuse=True):
    cell = decoder_cell(tf.contrib.seq2seq.tile_batch(encoded, BEAM))
    start = cell.zero_state(batch_size * BEAM, tf.float32).clone(
        cell_state=tf.contrib.seq2seq.tile_batch(state, BEAM))
    decoder = tf.contrib.seq2seq.BeamSearchDecoder(
        cell, embedding, tf.fill([batch_size], GO), EOS, start, BEAM, projection,
        length_penalty_weight=0.5)
    found, _, found_lengths = tf.contrib.seq2seq.dynamic_decode(decoder, maximum_iterations=2 * LENGTH)


def batch(size):
    digits = rng.randint(3, VOCAB, (size, LENGTH))
    return digits, np.concatenate([digits[:, ::-1], np.full((size, 1), EOS)], 1)


losses = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(200):
        given, wanted = batch(BATCH)
        losses.append(sess.run([train, loss], {source: given, target: wanted})[1])
    given, wanted = batch(64)
    beams = sess.run(found.predicted_ids, {source: given})

best = beams[:, : LENGTH + 1, 0]
accuracy = np.mean(np.all(best == wanted, axis=1)) if best.shape == wanted.shape else 0.0
print("loss %.3f -> %.3f, sequences right: %.2f" % (losses[0], losses[-1], accuracy))
