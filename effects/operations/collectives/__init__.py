"""Collective operations, which communicate over named axes; may import operations and what comes before it."""
