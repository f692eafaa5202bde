"""Forward and reverse derivatives, partial evaluation and rematerialisation as handlers, for grad, jvp and vjp in
transformations; may import analysis and what comes before it.
"""
