"""Evaluate, record, cache rules, and transform the bodies of higher-order operations; may import effects."""
