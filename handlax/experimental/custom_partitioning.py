"""``handlax.experimental.custom_partitioning``: functions that a user divides over devices, in place of the compiler."""

from ..effects.sharding.factor_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule
from ..interpreters.custom.custom_partitioning import custom_partitioning

__all__ = ["ArrayMapping", "BATCHING", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]
