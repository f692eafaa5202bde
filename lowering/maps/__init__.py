"""pmap and xmap, which compile what they map, over shard_map and vmap in interpreters/transformations; may import jit
and what comes before it.
"""
