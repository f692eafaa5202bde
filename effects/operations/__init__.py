"""The first-order operations, one block each, by family; may import functions and what comes before it."""
