"""Pytrees: treedefs, flattening, registration, and the functions on trees; may import base."""
