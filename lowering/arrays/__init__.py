"""Arrays over devices: transferred, sharded, assembled from shards; may import compile and what comes before it."""
