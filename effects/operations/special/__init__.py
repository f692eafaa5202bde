"""Special functions: gamma, beta, Bessel, zeta, greatest common divisor; may import reductions and what comes
before it.
"""
