"""Neural style in miniature: a fixed random conv net, gram matrices, total variation, one image
variable that is optimized."""
import numpy as np
import opdock as tf

STYLE_LAYERS = ('relu1', 'relu2')
CONTENT_LAYER = 'relu2'
SIDE = 16
rng = np.random.RandomState(12)
kernels = {'conv1': (rng.randn(3, 3, 3, 6) * 0.3).astype(np.float32),
           'conv2': (rng.randn(3, 3, 6, 8) * 0.2).astype(np.float32)}


def net(image):
    """Like vgg.net: a dict of activations by layer name."""
    out, current = {}, image
    for name in ('conv1', 'relu1', 'pool1', 'conv2', 'relu2'):
        kind = name[:4]
        if kind == 'conv':
            current = tf.nn.conv2d(current, tf.constant(kernels[name]), strides=(1, 1, 1, 1),
                                   padding='SAME')
        elif kind == 'relu':
            current = tf.nn.relu(current)
        elif kind == 'pool':
            current = tf.nn.avg_pool(current, ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1),
                                     padding='SAME')
        out[name] = current
    assert len(out) == 5
    return out


def _tensor_size(tensor):
    from operator import mul
    from functools import reduce
    return reduce(mul, (d.value for d in tensor.get_shape()), 1)


content = rng.rand(1, SIDE, SIDE, 3).astype(np.float32)
style = np.tile(np.sin(np.arange(SIDE) * 2.0)[None, None, :, None], (1, SIDE, 1, 3)) * 0.5 + 0.5

style_grams, content_features = {}, {}
g = tf.Graph()
with g.as_default(), g.device('/cpu:0'), tf.Session() as sess:
    style_image = tf.placeholder('float', shape=style.shape)
    features = net(style_image)
    for layer in STYLE_LAYERS:
        f = features[layer].eval(feed_dict={style_image: style})
        f = np.reshape(f, (-1, f.shape[3]))
        style_grams[layer] = np.matmul(f.T, f) / f.size

g = tf.Graph()
with g.as_default(), g.device('/cpu:0'), tf.Session() as sess:
    image = tf.placeholder('float', shape=content.shape)
    content_features[CONTENT_LAYER] = net(image)[CONTENT_LAYER].eval({image: content})

losses = []
with tf.Graph().as_default():
    image = tf.Variable(tf.random_normal(content.shape, seed=3) * 0.256)
    features = net(image)
    content_loss = 2 * tf.nn.l2_loss(features[CONTENT_LAYER] - content_features[CONTENT_LAYER]) \
        / content_features[CONTENT_LAYER].size
    style_losses = []
    for style_layer in STYLE_LAYERS:
        layer = features[style_layer]
        _, height, width, number = map(lambda i: i.value, layer.get_shape())
        feats = tf.reshape(layer, (-1, number))
        gram = tf.matmul(tf.transpose(feats), feats) / (height * width * number)
        style_gram = style_grams[style_layer]
        style_losses.append(2 * tf.nn.l2_loss(gram - style_gram) / style_gram.size)
    style_loss = 20.0 * tf.add_n(style_losses)
    tv_y_size = _tensor_size(image[:, 1:, :, :])
    tv_x_size = _tensor_size(image[:, :, 1:, :])
    tv_loss = 0.01 * 2 * (
        (tf.nn.l2_loss(image[:, 1:, :, :] - image[:, :SIDE - 1, :, :]) / tv_y_size)
        + (tf.nn.l2_loss(image[:, :, 1:, :] - image[:, :, :SIDE - 1, :]) / tv_x_size))
    loss = content_loss + style_loss + tv_loss
    train_step = tf.train.AdamOptimizer(0.05, 0.9, 0.999, 1e-08).minimize(loss)

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(80):
            train_step.run()
            losses.append(loss.eval())
        best = image.eval().reshape(content.shape[1:])
        parts = sess.run({'content': content_loss, 'style': style_loss, 'tv': tv_loss})
    print('loss: %g -> %g' % (losses[0], losses[-1]), parts)
