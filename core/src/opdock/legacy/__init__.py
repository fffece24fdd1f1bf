"""Puts back, for a program of TensorFlow 1's years, what its other libraries have removed since.

`np.float`, `collections.Iterable`, `inspect.getargspec`, `time.clock`, `scipy.misc.imread`,
`Image.ANTIALIAS` and their like: `names.py` lists them with what stands for them now. Only
`opdock run` asks for this, and tf.keras for the little that its library needs. A name that the
installed library still has is left alone, and what was used, and where, is told at the end.
"""

from opdock.legacy.restore import has_itself, put_back, put_back_for_keras

__all__ = ["has_itself", "put_back", "put_back_for_keras"]
