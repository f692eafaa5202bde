"""pmap and xmap, which compile what they map; may import jit and what comes before it."""
