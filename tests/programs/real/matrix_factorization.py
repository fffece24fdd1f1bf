"""Recommender by matrix factorization: biases, embeddings, L2, MomentumOptimizer, clipping."""
import numpy as np
import opdock as tf

rng = np.random.RandomState(8)
N_USERS, N_ITEMS, RANK = 30, 25, 3
true_u, true_v = rng.randn(N_USERS, RANK), rng.randn(N_ITEMS, RANK)
full = 3.0 + true_u.dot(true_v.T) * 0.5
pairs = np.array([(u, i) for u in range(N_USERS) for i in range(N_ITEMS)])
rng.shuffle(pairs)
train_pairs, test_pairs = pairs[:600], pairs[600:]


def inference(user_batch, item_batch, user_num, item_num, dim=5, device="/cpu:0"):
    with tf.device("/cpu:0"):
        with tf.variable_scope('lsi', reuse=tf.AUTO_REUSE):
            bias_global = tf.get_variable("bias_global", shape=[],
                                          initializer=tf.zeros_initializer())
            w_bias_user = tf.get_variable("embd_bias_user", shape=[user_num])
            w_bias_item = tf.get_variable("embd_bias_item", shape=[item_num])
            bias_user = tf.nn.embedding_lookup(w_bias_user, user_batch, name="bias_user")
            bias_item = tf.nn.embedding_lookup(w_bias_item, item_batch, name="bias_item")
            w_user = tf.get_variable("embd_user", shape=[user_num, dim],
                                     initializer=tf.truncated_normal_initializer(stddev=0.1))
            w_item = tf.get_variable("embd_item", shape=[item_num, dim],
                                     initializer=tf.truncated_normal_initializer(stddev=0.1))
            embd_user = tf.nn.embedding_lookup(w_user, user_batch, name="embedding_user")
            embd_item = tf.nn.embedding_lookup(w_item, item_batch, name="embedding_item")
    with tf.device(device):
        infer = tf.reduce_sum(tf.multiply(embd_user, embd_item), 1)
        infer = tf.add(infer, bias_global)
        infer = tf.add(infer, bias_user)
        infer = tf.add(infer, bias_item, name="svd_inference")
        regularizer = tf.add(tf.nn.l2_loss(embd_user), tf.nn.l2_loss(embd_item),
                             name="svd_regularizer")
    return infer, regularizer


def optimization(infer, regularizer, rate_batch, learning_rate, reg=0.01):
    global_step = tf.train.get_or_create_global_step()
    cost_l2 = tf.nn.l2_loss(tf.subtract(infer, rate_batch))
    penalty = tf.constant(reg, dtype=tf.float32, shape=[], name="l2")
    cost = tf.add(cost_l2, tf.multiply(regularizer, penalty))
    opt = tf.train.MomentumOptimizer(learning_rate, momentum=0.5)
    gvs = opt.compute_gradients(cost)
    capped = [(tf.IndexedSlices(tf.clip_by_value(g.values, -5., 5.), g.indices, g.dense_shape)
               if isinstance(g, tf.IndexedSlices) else tf.clip_by_value(g, -5., 5.), v)
              for g, v in gvs]
    return cost, opt.apply_gradients(capped, global_step=global_step), gvs


tf.set_random_seed(13575)
user_batch = tf.placeholder(tf.int32, shape=[None], name="id_user")
item_batch = tf.placeholder(tf.int32, shape=[None], name="id_item")
rate_batch = tf.placeholder(tf.float32, shape=[None])
infer, regularizer = inference(user_batch, item_batch, N_USERS, N_ITEMS, device="/gpu:0")
again, _ = inference(user_batch, item_batch, N_USERS, N_ITEMS)
_, train_op, gvs = optimization(infer, regularizer, rate_batch, learning_rate=0.03)
sparse = [v.op.name for g, v in gvs if isinstance(g, tf.IndexedSlices)]


def rmse(sess, which):
    guess, same = sess.run([infer, again], {user_batch: which[:, 0], item_batch: which[:, 1]})
    np.testing.assert_array_equal(guess, same)
    return float(np.sqrt(np.mean((guess - full[which[:, 0], which[:, 1]]) ** 2)))


with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    first = rmse(sess, test_pairs)
    for epoch in range(40):
        rng.shuffle(train_pairs)
        for chunk in np.split(train_pairs, 12):
            users, items = chunk.T
            sess.run(train_op, {user_batch: users, item_batch: items,
                                rate_batch: full[users, items]})
    last = rmse(sess, test_pairs)
    steps = tf.train.global_step(sess, tf.train.get_global_step())
    print("test RMSE %.3f -> %.3f after %d steps" % (first, last, steps))
