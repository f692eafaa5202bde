"""Convolutions and reductions over windows; may import operations and what comes before it."""
