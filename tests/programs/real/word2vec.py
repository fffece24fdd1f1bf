"""Skip-gram word vectors with negative sampling done by hand, then nearest neighbours."""
import collections
import math

import numpy as np
import opdock as tf

np.random.seed(4)
text = ("the cat sat on the mat the dog sat on the rug a cat and a dog ran "
        "one two three four five six seven two three four five six seven eight ") * 12
words = text.split()
count = collections.Counter(words).most_common()
dictionary = {word: i for i, (word, _) in enumerate(count)}
reverse_dictionary = dict(zip(dictionary.values(), dictionary.keys()))
data = [dictionary[w] for w in words]
vocabulary_size = len(dictionary)
data_index = 0


def generate_batch(batch_size, skip_window=1):
    global data_index
    batch, labels = [], []
    while len(batch) < batch_size:
        center = data_index % (len(data) - 2 * skip_window) + skip_window
        for offset in range(-skip_window, skip_window + 1):
            if offset:
                batch.append(data[center])
                labels.append(data[center + offset])
        data_index += 1
    return np.array(batch, dtype=np.int32), np.array(labels, dtype=np.int32).reshape(-1, 1)


batch_size, embedding_size, num_sampled = 48, 10, 12
valid_examples = np.array([dictionary[w] for w in ("three", "five", "cat")], dtype=np.int32)

graph = tf.Graph()
with graph.as_default():
    tf.set_random_seed(4)
    train_inputs = tf.placeholder(tf.int32, shape=[batch_size])
    train_labels = tf.placeholder(tf.int32, shape=[batch_size, 1])
    valid_dataset = tf.constant(valid_examples, dtype=tf.int32)

    with tf.device('/cpu:0'):
        embeddings = tf.Variable(tf.random_uniform([vocabulary_size, embedding_size], -1.0, 1.0))
        embed = tf.nn.embedding_lookup(embeddings, train_inputs)
        nce_weights = tf.Variable(tf.truncated_normal(
            [vocabulary_size, embedding_size], stddev=1.0 / math.sqrt(embedding_size)))
        nce_biases = tf.Variable(tf.zeros([vocabulary_size]))

    # true pairs
    flat = tf.reshape(train_labels, [-1])
    true_w = tf.nn.embedding_lookup(nce_weights, flat)
    true_b = tf.gather(nce_biases, flat)
    true_logits = tf.reduce_sum(embed * true_w, 1) + true_b
    # random words
    sampled = tf.random_uniform([num_sampled], maxval=vocabulary_size, dtype=tf.int32)
    sampled_w = tf.nn.embedding_lookup(params=nce_weights, ids=sampled)
    sampled_b = tf.nn.embedding_lookup(nce_biases, sampled)
    sampled_logits = tf.matmul(embed, sampled_w, transpose_b=True) + sampled_b
    loss = tf.reduce_mean(
        tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.ones_like(true_logits), logits=true_logits)
        + tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.zeros_like(sampled_logits), logits=sampled_logits), axis=1))

    grads = tf.gradients(loss, [embeddings, nce_weights])
    optimizer = tf.train.AdagradOptimizer(0.5).minimize(loss)

    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keep_dims=True))
    normalized_embeddings = embeddings / norm
    valid_embeddings = tf.nn.embedding_lookup(normalized_embeddings, valid_dataset)
    similarity = tf.matmul(valid_embeddings, normalized_embeddings, transpose_b=True)
    nearest = tf.nn.top_k(similarity, k=4)
    init = tf.global_variables_initializer()

with tf.Session(graph=graph) as session:
    init.run()
    average_loss, averages = 0, []
    for step in range(301):
        batch_inputs, batch_labels = generate_batch(batch_size)
        feed_dict = {train_inputs: batch_inputs, train_labels: batch_labels}
        _, loss_val = session.run([optimizer, loss], feed_dict=feed_dict)
        average_loss += loss_val
        if step % 100 == 0:
            averages.append(average_loss / (100. if step else 1.))
            print('Average loss at step ', step, ': ', averages[-1])
            average_loss = 0
    values, indices = session.run(nearest)
    for i, row in enumerate(indices):
        print('Nearest to %s: %s' % (reverse_dictionary[valid_examples[i]],
                                     ', '.join(reverse_dictionary[k] for k in row[1:])))
    final_embeddings = normalized_embeddings.eval()
    sparse_grad = session.run(grads[0], feed_dict)
