"""Handlers that users write: clauses, installation, state movements, resumption, elimination, early exit; may import
custom and what comes before it.
"""
