"""`tf.contrib.eager`: what programs use that run operations as they make them."""
