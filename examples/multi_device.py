"""Splits a batch over every device of the session: data parallelism as TensorFlow 1 wrote it.

Each tower is pinned to a device, the parameters and the sum live on the CPU. On a machine without
an accelerator, soft placement brings the towers of GPUs that do not exist back to the CPU, and
`Session.explain` says so.
"""

import numpy as np

import opdock as tf

config = tf.ConfigProto(allow_soft_placement=True)
with tf.Session(config=config) as probe:
    gpus = [device.name for device in probe.list_devices() if device.device_type == "GPU"]
towers = gpus or ["/gpu:0", "/gpu:1"]
print(f"GPUs found: {', '.join(gpus) or 'none'}")
print(f"towers on: {', '.join(towers)}")

with tf.device("/cpu:0"):
    images = tf.placeholder(tf.float32, [len(towers) * 32, 20], name="images")
    targets = tf.placeholder(tf.float32, [len(towers) * 32, 1], name="targets")
    weights = tf.get_variable("weights", [20, 1], initializer=tf.zeros_initializer())
    image_parts = tf.split(images, len(towers))
    target_parts = tf.split(targets, len(towers))

gradients, losses = [], []
for i, device in enumerate(towers):
    with tf.device(device), tf.name_scope(f"tower_{i}"):
        error = tf.matmul(image_parts[i], weights) - target_parts[i]
        losses.append(tf.reduce_mean(tf.square(error)))
        gradients.append(tf.gradients(losses[-1], weights)[0])

with tf.device("/cpu:0"):
    loss = tf.add_n(losses) / float(len(towers))
    mean_gradient = tf.add_n(gradients) / float(len(towers))
    train = tf.train.GradientDescentOptimizer(0.2).apply_gradients([(mean_gradient, weights)])

random = np.random.RandomState(0)
truth = random.randn(20, 1).astype(np.float32)
with tf.Session(config=config) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(200):
        batch = random.randn(len(towers) * 32, 20).astype(np.float32)
        noisy = batch @ truth + 0.1 * random.randn(len(batch), 1)
        _, last = sess.run([train, loss], feed_dict={images: batch, targets: noisy})
    print(sess.explain(train).summary())
    print(f"loss: {last:.4f}")  # near 0.01, the variance of the noise
