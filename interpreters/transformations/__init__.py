"""The public transformations over the handlers: grad, vmap, make_program, saved_residuals; may import references
and what comes before it.
"""
