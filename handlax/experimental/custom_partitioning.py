"""``handlax.experimental.custom_partitioning``: functions that their users divide over devices."""

from ..effects.sharding.factor_rules import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule
from ..interpreters.custom.custom_partitioning import custom_partitioning

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule", "custom_partitioning"]
