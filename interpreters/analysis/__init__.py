"""Analyses of programs, which also simplify them: types, dependence, cost, liveness, minimum cuts; may import effects.
"""
