"""What `perform` needs: operations, columns of rules, arrays, axes, settings of JAX as contexts; may import sharding
and what comes before it.
"""
