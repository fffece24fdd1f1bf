"""Three clouds of points: k-means as an estimator, then a mixture of Gaussians as a graph."""

import numpy as np
import opdock as tf

CENTERS = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
SPREAD = np.array([[1.0, 0.3], [0.3, 1.0], [0.6, 0.6]])
rng = np.random.RandomState(5)
kinds = rng.randint(0, 3, 300)
points = (CENTERS[kinds] + SPREAD[kinds] * rng.randn(300, 2)).astype(np.float32)


def whole():
    return tf.data.Dataset.from_tensors(points).repeat()


kmeans = tf.contrib.factorization.KMeansClustering(
    3, "kmeans", use_mini_batch=False, initial_clusters="kmeans_plus_plus", random_seed=7
)
kmeans.train(whole, steps=4)
middles = kmeans.cluster_centers()
order = np.argsort(middles.sum(1) + 0.1 * middles[:, 1])
found = np.argsort(order)[
    list(kmeans.predict_cluster_index(lambda: tf.data.Dataset.from_tensors(points)))
]

with tf.Graph().as_default():
    loss, scores, assigned, step, begin, begun = tf.contrib.factorization.gmm(
        tf.constant(points), middles[order], 3, random_seed=1
    )
    likelihoods = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        while not sess.run(begun):
            sess.run(begin)
        for _ in range(12):
            likelihoods.append(sess.run([tf.reduce_mean(scores), step])[0])
        labels = sess.run(assigned)[0][0]
        parts = {v.op.name: sess.run(v) for v in tf.global_variables()}
