"""Moving averages of the weights, saved, and restored in place of the weights for evaluation."""
import os

import numpy as np
import opdock as tf

MODEL_SAVE_PATH = "model"
MODEL_NAME = "ema.ckpt"
rng = np.random.RandomState(0)
X = rng.rand(128, 2)
Y = [[int(x0 + x1 < 1)] for (x0, x1) in X]


def inference(input_tensor, regularizer=None):
    with tf.variable_scope('layer1'):
        weights = tf.get_variable("weights", [2, 6], initializer=tf.truncated_normal_initializer(
            stddev=0.5, seed=1))
        if regularizer is not None:
            tf.add_to_collection('losses', regularizer(weights))
        biases = tf.get_variable("biases", [6], initializer=tf.constant_initializer(0.0))
        layer1 = tf.nn.relu(tf.matmul(input_tensor, weights) + biases)
    with tf.variable_scope('layer2'):
        weights = tf.get_variable("weights", [6, 1], initializer=tf.truncated_normal_initializer(
            stddev=0.5, seed=2))
        biases = tf.get_variable("biases", [1], initializer=tf.constant_initializer(0.0))
        return tf.matmul(layer1, weights) + biases


def train():
    x = tf.placeholder(tf.float32, [None, 2], name='x-input')
    y_ = tf.placeholder(tf.float32, [None, 1], name='y-input')
    y = inference(x, tf.contrib.layers.l2_regularizer(0.0001))
    global_step = tf.Variable(0, trainable=False)
    variable_averages = tf.train.ExponentialMovingAverage(0.9, global_step)
    variables_averages_op = variable_averages.apply(tf.trainable_variables())
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=y, labels=y_)) \
        + tf.add_n(tf.get_collection('losses'))
    train_step = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=global_step)
    with tf.control_dependencies([train_step, variables_averages_op]):
        train_op = tf.no_op(name='train')
    saver = tf.train.Saver(max_to_keep=2)
    losses = []
    with tf.Session() as sess:
        tf.global_variables_initializer().run()
        for i in range(120):
            _, loss_value, step = sess.run([train_op, loss, global_step],
                                           feed_dict={x: X, y_: Y})
            losses.append(loss_value)
            if i % 40 == 39:
                print("After %d training step(s), loss is %g." % (step, loss_value))
                saver.save(sess, os.path.join(MODEL_SAVE_PATH, MODEL_NAME),
                           global_step=global_step)
        raw = sess.run(tf.trainable_variables())
        averaged = sess.run([variable_averages.average(v) for v in tf.trainable_variables()])
    return losses, raw, averaged


def evaluate():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 2], name='x-input')
        y_ = tf.placeholder(tf.float32, [None, 1], name='y-input')
        y = inference(x, None)
        correct_prediction = tf.equal(y > 0, y_ > 0.5)
        accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
        variable_averages = tf.train.ExponentialMovingAverage(0.9)
        variables_to_restore = variable_averages.variables_to_restore()
        saver = tf.train.Saver(variables_to_restore)
        with tf.Session() as sess:
            ckpt = tf.train.get_checkpoint_state(MODEL_SAVE_PATH)
            assert ckpt and ckpt.model_checkpoint_path, 'No checkpoint file found'
            saver.restore(sess, ckpt.model_checkpoint_path)
            global_step = ckpt.model_checkpoint_path.split('/')[-1].split('-')[-1]
            accuracy_score = sess.run(accuracy, feed_dict={x: X, y_: Y})
            print("After %s training step(s), accuracy = %g" % (global_step, accuracy_score))
            return (accuracy_score, int(global_step), sorted(variables_to_restore),
                    sess.run(tf.trainable_variables()), list(ckpt.all_model_checkpoint_paths))


if not os.path.exists(MODEL_SAVE_PATH):
    os.makedirs(MODEL_SAVE_PATH)
losses, raw, averaged = train()
accuracy, saved_step, names, restored, kept = evaluate()
