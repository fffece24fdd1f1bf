"""`tf.contrib.receptive_field`: which part of an image a network's features see."""

from opdock.contrib.receptive_field.fields import (
    ReceptiveField,
    compute_receptive_field_from_graph_def,
)
from opdock.contrib.receptive_field.graph_compute_order import get_compute_order

__all__ = ["ReceptiveField", "compute_receptive_field_from_graph_def", "get_compute_order"]
