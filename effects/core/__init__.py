"""What `perform` needs: operations, columns of rules, arrays, axes, JAX's settings as contexts; may import sharding and what comes before it."""
