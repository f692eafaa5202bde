"""Collectives, the operations over named axes; may import operations and what comes before it."""
