"""Arrays over devices: put there, cut, assembled, and their parts; may import compile and what comes before it."""
