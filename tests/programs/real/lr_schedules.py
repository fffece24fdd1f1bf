"""Every learning rate schedule people use, against its formula, with one optimizer driven by it."""
import math

import numpy as np
import opdock as tf

global_step = tf.train.create_global_step()
start = 0.1
schedules = {
    'exponential': tf.train.exponential_decay(start, global_step, 10, 0.9),
    'staircase': tf.train.exponential_decay(start, global_step, 10, 0.9, staircase=True),
    'piecewise': tf.train.piecewise_constant(global_step, [10, 20], [0.1, 0.01, 0.001]),
    'polynomial': tf.train.polynomial_decay(start, global_step, decay_steps=20,
                                            end_learning_rate=0.01, power=0.5),
    'inverse_time': tf.train.inverse_time_decay(start, global_step, 10, 0.5),
    'natural_exp': tf.train.natural_exp_decay(start, global_step, 10, 0.5),
    'cosine': tf.train.cosine_decay(start, global_step=global_step, decay_steps=20, alpha=0.1),
}
expected = {
    'exponential': lambda s: start * 0.9 ** (s / 10.0),
    'staircase': lambda s: start * 0.9 ** (s // 10),
    'piecewise': lambda s: 0.1 if s <= 10 else 0.01 if s <= 20 else 0.001,
    'polynomial': lambda s: (start - 0.01) * (1 - min(s, 20) / 20.0) ** 0.5 + 0.01,
    'inverse_time': lambda s: start / (1 + 0.5 * s / 10.0),
    'natural_exp': lambda s: start * math.exp(-0.5 * s / 10.0),
    'cosine': lambda s: start * (0.9 * 0.5 * (1 + math.cos(math.pi * min(s, 20) / 20.0)) + 0.1),
}

# A warmup by tf.cond on top of one of them, as BERT-like code does
warmup_steps = 5
global_steps_float = tf.cast(global_step, tf.float32)
warmup = start * global_steps_float / float(warmup_steps)
is_warmup = tf.cast(global_step < warmup_steps, tf.float32)
learning_rate = (1.0 - is_warmup) * schedules['polynomial'] + is_warmup * warmup
by_cond = tf.cond(global_step < warmup_steps, lambda: warmup, lambda: schedules['polynomial'])

w = tf.get_variable('w', [3], initializer=tf.constant_initializer([1., -2., 3.]))
loss = tf.nn.l2_loss(w)
train_op = tf.train.GradientDescentOptimizer(learning_rate).minimize(
    loss, global_step=global_step)

values = {k: [] for k in schedules}
conds, rates, history = [], [], []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    w_np = np.array([1., -2., 3.])
    for i in range(25):
        fetched = sess.run({'all': schedules, 'lr': learning_rate, 'cond': by_cond})
        for k, v in fetched['all'].items():
            values[k].append(v)
        rates.append(fetched['lr'])
        conds.append(fetched['cond'])
        sess.run(train_op)
        w_np -= fetched['lr'] * w_np
    step_at_end, w_end = sess.run([global_step, w])
    print("step", step_at_end, "w", w_end)
errors = {k: max(abs(v - expected[k](s)) for s, v in enumerate(values[k])) for k in values}
