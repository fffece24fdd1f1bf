"""`tf.examples.tutorials.mnist`: the digits, and the tutorial's model of them."""

from opdock.examples.tutorials.mnist import input_data, mnist

__all__ = ["input_data", "mnist"]
