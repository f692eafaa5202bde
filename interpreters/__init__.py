"""The handlers: what operations mean; may import effects."""
