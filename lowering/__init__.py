"""Programs compiled and executed by XLA, with all uses of jaxlib's runtime; may import effects and interpreters."""
