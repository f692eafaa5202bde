"""Evaluate, record, cache traces and rules, and transform the bodies of higher-order operations; may import effects."""
