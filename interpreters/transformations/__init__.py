"""The public transformations over the handlers: grad and its kin, whose handlers are in differentiation, vmap,
shard_map, beside which pmap is in lowering/maps, make_program, saved_residuals; may import references and what comes
before it.
"""
