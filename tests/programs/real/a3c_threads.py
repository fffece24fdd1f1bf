"""Workers in threads share a session: local copies of a global network, a Coordinator, assign_add."""
import threading

import numpy as np
import opdock as tf


def update_target_graph(from_scope, to_scope):
    from_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, from_scope)
    to_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, to_scope)
    op_holder = []
    for from_var, to_var in zip(from_vars, to_vars):
        op_holder.append(to_var.assign(from_var))
    return op_holder


def normalized_columns_initializer(std=1.0):
    def _initializer(shape, dtype=None, partition_info=None):
        out = np.random.RandomState(3).randn(*shape).astype(np.float32)
        out *= std / np.sqrt(np.square(out).sum(axis=0, keepdims=True))
        return tf.constant(out)
    return _initializer


class AC_Network():
    def __init__(self, scope, trainer):
        with tf.variable_scope(scope):
            self.inputs = tf.placeholder(shape=[None, 3], dtype=tf.float32)
            hidden = tf.layers.dense(self.inputs, 8, activation=tf.nn.elu,
                                     kernel_initializer=normalized_columns_initializer(0.5))
            self.policy = tf.layers.dense(
                hidden, 3, activation=tf.nn.softmax, use_bias=False,
                kernel_initializer=normalized_columns_initializer(0.01))
            self.value = tf.layers.dense(hidden, 1, name='value')
        if scope != 'global':
            self.actions = tf.placeholder(shape=[None], dtype=tf.int32)
            actions_onehot = tf.one_hot(self.actions, 3, dtype=tf.float32)
            self.target_v = tf.placeholder(shape=[None], dtype=tf.float32)
            self.advantages = tf.placeholder(shape=[None], dtype=tf.float32)
            responsible = tf.reduce_sum(self.policy * actions_onehot, [1])
            self.value_loss = 0.5 * tf.reduce_sum(
                tf.square(self.target_v - tf.reshape(self.value, [-1])))
            self.entropy = -tf.reduce_sum(self.policy * tf.log(self.policy + 1e-8))
            self.policy_loss = -tf.reduce_sum(tf.log(responsible + 1e-8) * self.advantages)
            self.loss = 0.5 * self.value_loss + self.policy_loss - self.entropy * 0.01
            local_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
            self.gradients = tf.gradients(self.loss, local_vars)
            grads, self.grad_norms = tf.clip_by_global_norm(self.gradients, 40.0)
            global_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, 'global')
            self.apply_grads = trainer.apply_gradients(zip(grads, global_vars))


class Worker():
    def __init__(self, name, trainer, global_episodes):
        self.name = "worker_" + str(name)
        self.rng = np.random.RandomState(name)
        self.increment = global_episodes.assign_add(1)
        self.rewards = []
        self.local_AC = AC_Network(self.name, trainer)
        self.update_local_ops = update_target_graph('global', self.name)

    def work(self, sess, coord, episodes):
        with sess.as_default(), sess.graph.as_default():
            while not coord.should_stop():
                sess.run(self.update_local_ops)
                states = np.eye(3)[self.rng.randint(3, size=16)]
                policy, value = sess.run([self.local_AC.policy, self.local_AC.value],
                                         {self.local_AC.inputs: states})
                actions = [self.rng.choice(3, p=p / p.sum()) for p in policy.astype(np.float64)]
                rewards = (np.array(actions) == states.argmax(axis=1)).astype(np.float32)
                sess.run([self.local_AC.loss, self.local_AC.apply_grads], {
                    self.local_AC.inputs: states, self.local_AC.actions: actions,
                    self.local_AC.target_v: rewards,
                    self.local_AC.advantages: rewards - value[:, 0]})
                self.rewards.append(rewards.mean())
                if sess.run(self.increment) >= episodes:
                    coord.request_stop()


tf.reset_default_graph()
with tf.device("/cpu:0"):
    global_episodes = tf.Variable(0, dtype=tf.int32, name='global_episodes', trainable=False)
    trainer = tf.train.AdamOptimizer(learning_rate=0.02)
    master_network = AC_Network('global', None)
    workers = [Worker(i, trainer, global_episodes) for i in range(3)]

with tf.Session() as sess:
    coord = tf.train.Coordinator()
    sess.run(tf.global_variables_initializer())
    worker_threads = []
    for worker in workers:
        t = threading.Thread(target=lambda w=worker: w.work(sess, coord, 150))
        t.start()
        worker_threads.append(t)
    coord.join(worker_threads)
    episodes = sess.run(global_episodes)
    policy = sess.run(master_network.policy, {master_network.inputs: np.eye(3)})
    slots = trainer.get_slot_names()
rewards = [r for w in workers for r in w.rewards[-10:]]
print(episodes, np.round(policy, 2), np.mean(rewards))
