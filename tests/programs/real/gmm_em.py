"""Expectation maximization for a mixture of diagonal Gaussians, in log space and double precision."""
import numpy as np
import opdock as tf

DIMENSIONS, COMPONENTS, TRAINING_STEPS, TOLERANCE = 2, 3, 60, 1e-8
rng = np.random.RandomState(10)
true_means = np.array([[-3., 0.], [3., 1.], [0., 5.]])
true_vars = np.array([[1., .3], [.2, 1.], [.5, .5]])
true_weights = np.array([.5, .3, .2])
which = rng.choice(COMPONENTS, size=900, p=true_weights)
data = true_means[which] + rng.randn(900, DIMENSIONS) * np.sqrt(true_vars[which])

ln2piD = tf.constant(np.log(2 * np.pi) * DIMENSIONS, dtype=tf.float64)
input = tf.placeholder(tf.float64, [None, DIMENSIONS])
means = tf.Variable(data[[0, 400, 700]] * 0.5 + np.array([[-1., 0.], [1., 0.], [0., 2.]]),
                    dtype=tf.float64)
variances = tf.Variable(tf.cast(tf.ones([COMPONENTS, DIMENSIONS]), tf.float64) * 4.)
weights = tf.Variable(tf.cast(tf.fill([COMPONENTS], 1. / COMPONENTS), tf.float64))

# E-step: responsibilities through log-sum-exp
sq_distances = tf.squared_difference(tf.expand_dims(input, 0), tf.expand_dims(means, 1))
sum_sq_dist_times_inv_var = tf.reduce_sum(sq_distances / tf.expand_dims(variances, 1), 2)
log_coefficients = tf.expand_dims(ln2piD + tf.reduce_sum(tf.log(variances), 1), 1)
log_components = -0.5 * (log_coefficients + sum_sq_dist_times_inv_var)
log_weighted = log_components + tf.expand_dims(tf.log(weights), 1)
log_shift = tf.expand_dims(tf.reduce_max(log_weighted, 0), 0)
exp_log_shifted = tf.exp(log_weighted - log_shift)
exp_log_shifted_sum = tf.reduce_sum(exp_log_shifted, 0)
gamma = exp_log_shifted / exp_log_shifted_sum

# M-step
gamma_sum = tf.reduce_sum(gamma, 1)
gamma_weighted = gamma / tf.expand_dims(gamma_sum, 1)
means_ = tf.reduce_sum(tf.expand_dims(input, 0) * tf.expand_dims(gamma_weighted, 2), 1)
distances_ = tf.squared_difference(tf.expand_dims(input, 0), tf.expand_dims(means_, 1))
variances_ = tf.reduce_sum(distances_ * tf.expand_dims(gamma_weighted, 2), 1)
weights_ = gamma_sum / tf.cast(tf.shape(input)[0], tf.float64)

log_likelihood = tf.reduce_sum(tf.log(exp_log_shifted_sum)) + tf.reduce_sum(log_shift)
mean_log_likelihood = log_likelihood / tf.cast(tf.shape(input)[0] * tf.shape(input)[1], tf.float64)
with tf.control_dependencies([mean_log_likelihood, means_, variances_, weights_]):
    train_step = tf.group(means.assign(means_), variances.assign(variances_),
                          weights.assign(weights_))

likelihoods = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    previous = -np.inf
    for step in range(TRAINING_STEPS):
        current, _ = sess.run([mean_log_likelihood, train_step], feed_dict={input: data})
        likelihoods.append(current)
        if current - previous <= TOLERANCE:
            break
        previous = current
    final_means, final_vars, final_weights = sess.run([means, variances, weights])
    lse = sess.run(tf.reduce_logsumexp(log_weighted, axis=0), {input: data}).mean() / DIMENSIONS
print(np.round(final_means, 2), np.round(final_weights, 2), len(likelihoods))
