"""Synchronous data parallelism: towers on /gpu:%d, shared variables on the CPU, averaged gradients."""
import numpy as np
import opdock as tf

NUM_GPUS = 3
BATCH = 24


def tower_loss(scope, images, labels):
    def layer(x, n_out, name, act=None):
        with tf.variable_scope(name):
            with tf.device('/cpu:0'):
                w = tf.get_variable('w', [x.shape[1].value, n_out],
                                    initializer=tf.random_normal_initializer(stddev=0.3, seed=5))
                b = tf.get_variable('b', n_out, initializer=tf.zeros_initializer())
            y = tf.matmul(x, w) + b
            return act(y) if act else y

    hidden = layer(images, 10, 'hidden', tf.nn.relu)
    logits = layer(hidden, 3, 'logits')
    xent = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=logits), name='xent')
    tf.add_to_collection('losses', xent)
    # Only the losses of this tower
    losses = tf.get_collection('losses', scope)
    return tf.add_n(losses, name='total_loss')


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = []
        for g, _ in grad_and_vars:
            expanded_g = tf.expand_dims(g, 0)
            grads.append(expanded_g)
        grad = tf.concat(axis=0, values=grads)
        grad = tf.reduce_mean(grad, 0)
        v = grad_and_vars[0][1]
        average_grads.append((grad, v))
    return average_grads


rng = np.random.RandomState(1)
X = rng.randn(BATCH, 6).astype(np.float32)
Y = np.argmax(X[:, :3], axis=1)

with tf.Graph().as_default(), tf.device('/cpu:0'):
    global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0),
                                  trainable=False)
    opt = tf.train.GradientDescentOptimizer(0.5)
    images = tf.placeholder(tf.float32, [BATCH, 6])
    labels = tf.placeholder(tf.int64, [BATCH])
    image_splits = tf.split(images, NUM_GPUS)
    label_splits = tf.split(axis=0, num_or_size_splits=NUM_GPUS, value=labels)
    tower_grads, tower_losses = [], []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(NUM_GPUS):
            with tf.device('/gpu:%d' % i):
                with tf.name_scope('%s_%d' % ('tower', i)) as scope:
                    loss = tower_loss(scope, image_splits[i], label_splits[i])
                    # Reuse variables for the next tower.
                    tf.get_variable_scope().reuse_variables()
                    grads = opt.compute_gradients(loss)
                    tower_grads.append(grads)
                    tower_losses.append(loss)
    grads = average_gradients(tower_grads)
    apply_gradient_op = opt.apply_gradients(grads, global_step=global_step)

    # One big batch on one device must give the same gradient
    with tf.variable_scope(tf.get_variable_scope(), reuse=True), tf.name_scope('whole') as scope:
        whole = tower_loss(scope, images, labels)
    whole_grads = tf.gradients(whole, tf.trainable_variables())
    averaged = [g for g, _ in grads]

    devices = sorted({op.device for op in tf.get_default_graph().get_operations()
                      if op.name.startswith('tower_') and op.type == 'MatMul'})
    variable_names = [v.op.name for v in tf.trainable_variables()]
    variable_devices = {v.device for v in tf.trainable_variables()}
    sess = tf.Session(config=tf.ConfigProto(
        allow_soft_placement=True, log_device_placement=False))
    sess.run(tf.global_variables_initializer())
    feed = {images: X, labels: Y}
    by_towers, at_once = sess.run([averaged, whole_grads], feed)
    loss_history = []
    for step in range(60):
        _, loss_values = sess.run([apply_gradient_op, tower_losses], feed)
        loss_history.append(np.mean(loss_values))
    steps = sess.run(global_step)
    print('loss %.3f -> %.3f' % (loss_history[0], loss_history[-1]))
    sess.close()
