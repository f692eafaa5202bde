"""Programs compiled and executed by XLA, with all uses of jaxlib; may import effects and interpreters."""
