"""The same small programs with effects in several systems, executed side by side."""
