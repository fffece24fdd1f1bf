"""Lloyd's k-means as a graph: expand_dims, tile, argmin, unsorted_segment_sum, assign."""
import numpy as np
import opdock as tf

N, K, MAX_ITERS = 300, 3, 50
np.random.seed(6)
true_centers = np.array([[0., 0.], [6., 1.], [2., 7.]])
points_ = np.concatenate([c + np.random.randn(N // K, 2) * 0.5 for c in true_centers])

points = tf.Variable(points_.astype('float32'), trainable=False)
cluster_assignments = tf.Variable(tf.zeros([N], dtype=tf.int64))
# Start from one point of each third
centroids = tf.Variable(tf.gather(points.initialized_value(), [0, 120, 250]))

# Replicate to N copies of each centroid and K copies of each point, then subtract
rep_centroids = tf.reshape(tf.tile(centroids, [N, 1]), [N, K, 2])
rep_points = tf.reshape(tf.tile(points, [1, K]), [N, K, 2])
sum_squares = tf.reduce_sum(tf.square(rep_points - rep_centroids), reduction_indices=2)
best_centroids = tf.argmin(sum_squares, 1)
did_assignments_change = tf.reduce_any(tf.not_equal(best_centroids, cluster_assignments))


def bucket_mean(data, bucket_ids, num_buckets):
    total = tf.unsorted_segment_sum(data, bucket_ids, num_buckets)
    count = tf.unsorted_segment_sum(tf.ones_like(data), bucket_ids, num_buckets)
    return total / count


means = bucket_mean(points, best_centroids, K)

# Do not write to the assigned clusters until after computing whether they changed
with tf.control_dependencies([did_assignments_change]):
    do_updates = tf.group(
        centroids.assign(means),
        cluster_assignments.assign(best_centroids))

sess = tf.Session()
sess.run(tf.global_variables_initializer())
changed, iters = True, 0
while changed and iters < MAX_ITERS:
    iters += 1
    [changed, _] = sess.run([did_assignments_change, do_updates])

[centers, assignments] = sess.run([centroids, cluster_assignments])
print("Found in %d iterations\n" % iters, centers)
partitions = sess.run(tf.dynamic_partition(points, tf.to_int32(cluster_assignments), K))
sess.close()
