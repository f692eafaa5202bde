"""What `perform` needs: operations, columns of rules, arrays, axes; may import sharding and what comes before it."""
