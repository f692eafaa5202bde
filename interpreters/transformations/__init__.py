"""The public transformations over the handlers: grad and its kin, whose handlers are in differentiation, vmap,
checkpoint, make_program, saved_residuals, shard_map, beside which pmap is in lowering/maps; may import ragged and
what comes before it.
"""
