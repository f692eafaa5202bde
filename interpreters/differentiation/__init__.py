"""Forward and reverse derivatives, partial evaluation, rematerialisation; may import analysis and what comes before
it.
"""
