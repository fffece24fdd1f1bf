"""Beam search over a model of pairs of words, as one would write it in Python."""

import itertools

import numpy as np

import opdock as tf

WORDS, BEAMS, LONGEST, START, END = 6, 3, 5, 0, 1

rng = np.random.RandomState(3)
table = np.log(rng.dirichlet(np.ones(WORDS), WORDS)).astype(np.float32)


class Model:
    def __init__(self, table):
        self.pairs = tf.constant(table)

    def scores(self, words):
        """The log probabilities of all words after each of these."""
        return tf.gather(self.pairs, words)


def search(model, beams, longest):
    """The best sentences, their scores, and how many words were looked for."""
    sentences = tf.one_hot(tf.zeros([beams], tf.int32), 1, START, dtype=tf.int32)
    sentences = tf.pad(sentences, [[0, 0], [0, longest]], constant_values=END)
    scores = tf.concat([[0.0], tf.fill([beams - 1], -np.inf)], 0)
    ended = tf.zeros([beams], tf.bool)
    only_end = tf.one_hot([END], WORDS, 0.0, -np.inf)
    words = 0
    for place in tf.range(longest):
        if tf.reduce_all(ended):
            break
        last = sentences[:, place]
        following = tf.where(ended, tf.tile(only_end, [beams, 1]), model.scores(last))
        scores, best = tf.nn.top_k(tf.reshape(scores[:, None] + following, [-1]), beams)
        origin, word = best // WORDS, best % WORDS
        here = tf.one_hot(place + 1, longest + 1, dtype=tf.int32)
        sentences = tf.gather(sentences, origin) * (1 - here) + word[:, None] * here
        ended = tf.logical_or(tf.gather(ended, origin), tf.equal(word, END))
        words += 1
    return sentences, scores, words


longest = tf.placeholder(tf.int32, [])
result = tf.function(search)(Model(table), BEAMS, longest)

with tf.Session() as session:
    found = session.run(result, {longest: LONGEST})
    short = session.run(result, {longest: 2})
print("Best:", found[0][0], found[1][0])


def score(words):
    total = 0.0
    for one, other in zip((START,) + words, words):
        total += 0.0 if one == END and other == END else table[one, other]
        if one == END and other != END:
            return -np.inf
    return total


def ranked(length):
    """All sentences, best first."""
    return sorted(itertools.product(range(WORDS), repeat=length), key=score, reverse=True)
