"""Infix operators of arrays and arithmetic with NumPy's type promotion; may import control and what comes before it.
"""
