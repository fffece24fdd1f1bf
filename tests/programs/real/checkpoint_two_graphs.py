"""Save in one graph; restore in a second one built anew, in a third from the meta graph, and in
part into a fourth with other names."""
import os

import numpy as np
import opdock as tf

CKPT_DIR = './ckpts'
X = np.linspace(-1, 1, 32).reshape(-1, 1)
Y = 3 * X + 0.5


def build(scope='net', hidden=6):
    with tf.variable_scope(scope):
        x = tf.placeholder(tf.float32, [None, 1], name='x')
        y = tf.placeholder(tf.float32, [None, 1], name='y')
        w1 = tf.get_variable('w1', [1, hidden], initializer=tf.random_uniform_initializer(
            minval=-1., maxval=1., seed=4))
        b1 = tf.get_variable('b1', [hidden], initializer=tf.constant_initializer(0.1))
        w2 = tf.get_variable('w2', [hidden, 1], initializer=tf.random_uniform_initializer(
            -1., 1., seed=5))
        out = tf.matmul(tf.nn.tanh(tf.nn.xw_plus_b(x, w1, b1)), w2, name='out')
        loss = tf.reduce_mean(tf.square(out - y), name='loss')
    return x, y, out, loss


def train(steps):
    """Goes on from the last checkpoint when there is one."""
    with tf.Graph().as_default():
        x, y, out, loss = build()
        global_step = tf.Variable(0, name='global_step', trainable=False)
        train_op = tf.train.AdamOptimizer(0.02).minimize(loss, global_step=global_step,
                                                         name='train_op')
        tf.add_to_collection('outputs', out)
        saver = tf.train.Saver(max_to_keep=3, keep_checkpoint_every_n_hours=1)
        with tf.Session() as sess:
            ckpt = tf.train.latest_checkpoint(CKPT_DIR)
            if ckpt:
                saver.restore(sess, ckpt)
            else:
                sess.run(tf.global_variables_initializer())
            for _ in range(steps):
                _, step, l = sess.run([train_op, global_step, loss], {x: X, y: Y})
                if step % 20 == 0:
                    path = saver.save(sess, os.path.join(CKPT_DIR, 'model'),
                                      global_step=step)
            return l, path, sess.run(out, {x: X}), step


os.makedirs(CKPT_DIR)
first_loss, first_path, _, first_step = train(40)
second_loss, path, expected, second_step = train(60)

# From the .meta file only
with tf.Graph().as_default() as graph:
    with tf.Session() as sess:
        saver = tf.train.import_meta_graph(path + '.meta')
        saver.restore(sess, path)
        out = tf.get_collection('outputs')[0]
        x, y = graph.get_tensor_by_name('net/x:0'), graph.get_tensor_by_name('net/y:0')
        from_meta = sess.run(out, feed_dict={x: X})
        # training goes on with the imported op
        sess.run('train_op', {x: X, y: Y})
        meta_step = sess.run(graph.get_tensor_by_name('global_step:0'))

# Other names, some variables only
with tf.Graph().as_default():
    x, _, out, _ = build(scope='student')
    variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope='student')
    mapping = {v.op.name.replace('student', 'net'): v for v in variables}
    saver = tf.train.Saver(var_list=mapping)
    extra = tf.get_variable('extra', initializer=tf.constant([7.0]))
    with tf.Session() as sess:
        sess.run(tf.variables_initializer([extra]))
        saver.restore(sess, path)
        renamed = sess.run(out, {x: X})
        uninitialized = list(sess.run(tf.report_uninitialized_variables()))

reader = tf.train.NewCheckpointReader(path)
shapes = reader.get_variable_to_shape_map()
listed = dict(tf.train.list_variables(CKPT_DIR))
kept = tf.train.get_checkpoint_state(CKPT_DIR).all_model_checkpoint_paths
print(first_loss, second_loss, second_step, sorted(shapes))
