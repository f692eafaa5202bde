"""Higher-order operations: branches, loops, lanes, checkpoint, custom rules, callbacks; may import operations
and what comes before it.
"""
