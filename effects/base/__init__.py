"""The handler stack, source locations, errors, settings, caches, immutability; may import errors."""
