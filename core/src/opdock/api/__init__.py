"""TensorFlow's public modules, a file each: `opdock.api.nn` is what programs see as `tf.nn`.

They gather names from the ops and libraries below; what has code of its own here (flags, files,
logging, test cases) is used by programs alone. `import opdock.nn` finds `opdock.api.nn`. Larger
public packages, such as `tf.train` and `tf.layers`, stand under their own names.
"""
