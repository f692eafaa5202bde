"""XLA's clients: one for each platform, joined with those of other processes; may import effects and interpreters."""
