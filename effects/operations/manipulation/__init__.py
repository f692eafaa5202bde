"""Creation, slicing, rearranging, and promotion of operands; may import elementwise and what comes before it."""
