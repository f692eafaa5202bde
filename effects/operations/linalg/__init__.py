"""Factorisations of matrices, each in its file, and solutions of linear systems; may import operations and what comes
before it.
"""
