"""pmap and xmap: maps that compile, over devices and over named axes; may import jit and what comes before it."""
