"""``handlax.extend.source_info_util``: whose lines messages name, under JAX's names."""

from ..effects.base.source_locations import register_exclusion as register_exclusion
