"""Forward and reverse derivatives, partial evaluation and rematerialisation as handlers, for grad, jvp and vjp in
transformations; may import core and what comes before it.
"""
