"""The first-order operations, one block each, by family; may import programs and what comes before it."""
