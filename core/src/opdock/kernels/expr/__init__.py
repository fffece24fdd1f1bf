"""Scalar expressions: one text an elementwise op, lowered to typed lines and rendered."""
