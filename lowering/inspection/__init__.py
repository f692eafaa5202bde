"""What compiled functions cost, by their text and by a profile; may import jit and what comes before it."""
