"""REINFORCE on a contextual bandit with gradients collected by hand and fed back in placeholders."""
import numpy as np
import opdock as tf

np.random.seed(3)


class contextual_bandit():
    def __init__(self):
        # Each row: probability of a reward of each arm
        self.bandits = np.array([[0.9, 0.1, 0.1, 0.2], [0.1, 0.2, 0.9, 0.1], [0.1, 0.9, 0.1, 0.1]])
        self.num_bandits, self.num_actions = self.bandits.shape

    def getBandit(self):
        return np.random.randint(self.num_bandits)

    def pullArm(self, state, action):
        return 1.0 if np.random.rand() < self.bandits[state, action] else -1.0


class agent():
    def __init__(self, lr, s_size, a_size, clip=5.0):
        self.state_in = tf.placeholder(shape=[None], dtype=tf.int32)
        state_in_OH = tf.one_hot(self.state_in, s_size, on_value=1.0, off_value=0.0, axis=-1)
        W = tf.get_variable('policy_w', [s_size, a_size], initializer=tf.ones_initializer())
        self.output = tf.nn.softmax(tf.matmul(state_in_OH, W))
        self.chosen_action = tf.argmax(self.output, 1)

        self.reward_holder = tf.placeholder(shape=[None], dtype=tf.float32)
        self.action_holder = tf.placeholder(shape=[None], dtype=tf.int32)
        self.indexes = tf.range(0, tf.shape(self.output)[0]) * tf.shape(self.output)[1] \
            + self.action_holder
        self.responsible_outputs = tf.gather(tf.reshape(self.output, [-1]), self.indexes)
        self.loss = -tf.reduce_mean(tf.log(self.responsible_outputs) * self.reward_holder)

        tvars = tf.trainable_variables()
        self.gradient_holders = []
        for idx, var in enumerate(tvars):
            placeholder = tf.placeholder(tf.float32, name=str(idx) + '_holder')
            self.gradient_holders.append(placeholder)
        self.gradients = tf.gradients(self.loss, tvars)
        clipped, self.norm = tf.clip_by_global_norm(self.gradient_holders, clip)
        optimizer = tf.train.AdamOptimizer(learning_rate=lr)
        self.update_batch = optimizer.apply_gradients(zip(clipped, tvars))


tf.reset_default_graph()

bandit = contextual_bandit()
myAgent = agent(lr=0.05, s_size=3, a_size=4)
update_frequency = 5
total_reward = []
init = tf.global_variables_initializer()

with tf.Session() as sess:
    sess.run(init)
    gradBuffer = sess.run(tf.trainable_variables())
    for ix, grad in enumerate(gradBuffer):
        gradBuffer[ix] = grad * 0

    for i in range(120):
        states, actions, rewards = [], [], []
        for j in range(8):
            s = bandit.getBandit()
            a_dist = sess.run(myAgent.output, feed_dict={myAgent.state_in: [s]})
            a = np.random.choice(a_dist[0], p=a_dist[0] / a_dist[0].sum())
            a = np.argmax(a_dist == a)
            states.append(s)
            actions.append(a)
            rewards.append(bandit.pullArm(s, a))
        feed_dict = {myAgent.reward_holder: rewards, myAgent.action_holder: actions,
                     myAgent.state_in: np.vstack(states)[:, 0]}
        grads = sess.run(myAgent.gradients, feed_dict=feed_dict)
        for idx, grad in enumerate(grads):
            gradBuffer[idx] += grad
        if i % update_frequency == 0 and i != 0:
            feed_dict = dict(zip(myAgent.gradient_holders, gradBuffer))
            _, norm = sess.run([myAgent.update_batch, myAgent.norm], feed_dict=feed_dict)
            assert np.isclose(norm, np.sqrt(sum((g ** 2).sum() for g in gradBuffer)), rtol=1e-5)
            for ix, grad in enumerate(gradBuffer):
                gradBuffer[ix] = grad * 0
        total_reward.append(np.mean(rewards))
        if i % 40 == 0:
            print("Mean reward:", np.mean(total_reward[-40:]))
    best = sess.run(myAgent.chosen_action, {myAgent.state_in: range(3)})
