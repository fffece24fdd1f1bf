"""Deep Q-learning on a corridor of seven cells: replay memory and a target network copied by assign."""
import random
from collections import deque

import numpy as np
import opdock as tf

N_STATES, N_ACTIONS = 7, 2
GAMMA = 0.9


class Corridor(object):
    """Start in the middle; walk right to the goal (+1) or left into the pit (-1)."""

    def reset(self):
        self.at = N_STATES // 2
        return self.at

    def step(self, action):
        self.at += 1 if action == 1 else -1
        done = self.at in (0, N_STATES - 1)
        return self.at, (1.0 if self.at == N_STATES - 1 else -1.0) if done else 0.0, done


def one_hot(states):
    return np.eye(N_STATES, dtype=np.float32)[np.asarray(states)]


class DeepQNetwork:
    def __init__(self, learning_rate=0.01, replace_target_iter=20):
        self.learn_step_counter = 0
        self.replace_target_iter = replace_target_iter
        self._build_net(learning_rate)
        t_params = tf.get_collection('target_net_params')
        e_params = tf.get_collection('eval_net_params')
        self.replace_target_op = [tf.assign(t, e) for t, e in zip(t_params, e_params)]
        tau = 0.5
        self.soft_update = tf.group(*[t.assign(tau * e + (1. - tau) * t)
                                      for t, e in zip(t_params, e_params)], name='soft_update')
        self.sess = tf.Session()
        self.sess.run(tf.global_variables_initializer())

    def _layers(self, s, c_names):
        w_init = tf.random_normal_initializer(0., 0.3)
        b_init = tf.constant_initializer(0.1)
        with tf.variable_scope('l1'):
            w1 = tf.get_variable('w1', [N_STATES, 16], initializer=w_init, collections=c_names)
            b1 = tf.get_variable('b1', [1, 16], initializer=b_init, collections=c_names)
            l1 = tf.nn.relu(tf.matmul(s, w1) + b1)
        with tf.variable_scope('l2'):
            w2 = tf.get_variable('w2', [16, N_ACTIONS], initializer=w_init, collections=c_names)
            b2 = tf.get_variable('b2', [1, N_ACTIONS], initializer=b_init, collections=c_names)
            return tf.matmul(l1, w2) + b2

    def _build_net(self, lr):
        self.s = tf.placeholder(tf.float32, [None, N_STATES], name='s')
        self.a = tf.placeholder(tf.int32, [None], name='a')
        self.r = tf.placeholder(tf.float32, [None], name='r')
        self.done = tf.placeholder(tf.float32, [None], name='done')
        self.s_ = tf.placeholder(tf.float32, [None, N_STATES], name='s_')
        with tf.variable_scope('eval_net'):
            self.q_eval = self._layers(
                self.s, ['eval_net_params', tf.GraphKeys.GLOBAL_VARIABLES])
        with tf.variable_scope('target_net'):
            self.q_next = self._layers(
                self.s_, ['target_net_params', tf.GraphKeys.GLOBAL_VARIABLES])
        with tf.variable_scope('q_target'):
            q_target = self.r + GAMMA * (1. - self.done) * tf.reduce_max(
                self.q_next, axis=1, name='Qmax_s_')
            self.q_target = tf.stop_gradient(q_target)
        with tf.variable_scope('q_eval'):
            a_indices = tf.stack(
                [tf.range(tf.shape(self.a)[0], dtype=tf.int32), self.a], axis=1)
            self.q_eval_wrt_a = tf.gather_nd(params=self.q_eval, indices=a_indices)
        with tf.variable_scope('loss'):
            self.loss = tf.reduce_mean(
                tf.squared_difference(self.q_target, self.q_eval_wrt_a, name='TD_error'))
        with tf.variable_scope('train'):
            params = tf.get_collection('eval_net_params')
            self._train_op = tf.train.RMSPropOptimizer(lr).minimize(self.loss, var_list=params)

    def choose_action(self, state, epsilon):
        if np.random.uniform() < epsilon:
            return np.random.randint(N_ACTIONS)
        q = self.sess.run(self.q_eval, feed_dict={self.s: one_hot([state])})
        return int(np.argmax(q))

    def learn(self, batch):
        if self.learn_step_counter % self.replace_target_iter == 0:
            self.sess.run(self.replace_target_op)
        s, a, r, s_, d = zip(*batch)
        _, cost = self.sess.run([self._train_op, self.loss], feed_dict={
            self.s: one_hot(s), self.a: a, self.r: r, self.s_: one_hot(s_),
            self.done: np.array(d, dtype=np.float32)})
        self.learn_step_counter += 1
        return cost


random.seed(1)
np.random.seed(1)
tf.set_random_seed(1)
env, memory, agent = Corridor(), deque(maxlen=500), DeepQNetwork()
for episode in range(60):
    state, done = env.reset(), False
    while not done:
        action = agent.choose_action(state, epsilon=max(0.1, 1.0 - episode / 40.))
        next_state, reward, done = env.step(action)
        memory.append((state, action, reward, next_state, done))
        state = next_state
        if len(memory) > 40:
            agent.learn(random.sample(list(memory), 32))

agent.sess.run(agent.replace_target_op)
q_values = agent.sess.run(agent.q_eval, {agent.s: np.eye(N_STATES)})
target_q = agent.sess.run(agent.q_next, {agent.s_: np.eye(N_STATES)})
print(np.round(q_values, 2))
policy = q_values.argmax(axis=1)[1:-1]
agent.sess.close()
