"""The public transformations over the handlers: grad, vmap, checkpoint, make_program, saved_residuals; may import
references and what comes before it.
"""
