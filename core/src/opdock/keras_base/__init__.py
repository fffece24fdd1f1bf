"""What Keras 2.3 stands on: it takes sessions, functions and loops from TensorFlow's tf.keras.

Keras 2.2 brings these itself and is tf.keras here; 2.3 finds its part of TensorFlow's internal
`python.keras` in these modules.
"""
