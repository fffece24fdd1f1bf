"""A tagger of words by a conditional random field, whose tags depend on the tag before."""
import numpy as np
import opdock as tf

TAGS, FEATURES, TIME, EXAMPLES = 3, 5, 6, 40

rng = np.random.RandomState(3)
tf.set_random_seed(3)

# Tags that follow each other in a circle most of the time, and features that tell them badly.
lengths = rng.randint(2, TIME + 1, EXAMPLES).astype(np.int32)
tags = np.zeros((EXAMPLES, TIME), np.int32)
for row in range(EXAMPLES):
    tags[row, 0] = rng.randint(TAGS)
    for step in range(1, TIME):
        tags[row, step] = (tags[row, step - 1] + (rng.rand() < 0.9)) % TAGS
signal = rng.randn(TAGS, FEATURES)
words = (signal[tags] + 1.5 * rng.randn(EXAMPLES, TIME, FEATURES)).astype(np.float32)

inputs = tf.constant(words)
scores = tf.reshape(
    tf.layers.dense(tf.reshape(inputs, [-1, FEATURES]), TAGS, name="score"), [EXAMPLES, TIME, TAGS])
log_likelihood, transitions = tf.contrib.crf.crf_log_likelihood(scores, tags, lengths)
loss = tf.reduce_mean(-log_likelihood)
train = tf.train.AdamOptimizer(0.1).minimize(loss)
decoded, best_score = tf.contrib.crf.crf_decode(scores, transitions, lengths)

losses = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(60):
        losses.append(sess.run([train, loss])[1])
    found, final_score, unary, matrix = sess.run([decoded, best_score, scores, transitions])

right = total = alone = 0
for row, length in enumerate(lengths):
    sequence, score = tf.contrib.crf.viterbi_decode(unary[row, :length], matrix)
    assert sequence == found[row, :length].tolist()
    assert abs(score - final_score[row]) < 1e-3
    right += np.sum(np.array(sequence) == tags[row, :length])
    alone += np.sum(np.argmax(unary[row, :length], 1) == tags[row, :length])
    total += length
accuracy, without = right / total, alone / total
print("accuracy %.2f, without transitions %.2f" % (accuracy, without))
