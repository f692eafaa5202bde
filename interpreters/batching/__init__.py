"""The handler of vmap, and branches and loops on which its lanes diverge; may import differentiation and what comes
before it.
"""
