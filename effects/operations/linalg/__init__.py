"""Matrix factorisations, each in its own file, and solutions of linear systems; may import operations and what comes
before it.
"""
