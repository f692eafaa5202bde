"""``handlax.experimental.serialize_executable``: compiled functions as bytes, for the same kind of machine."""

from ..lowering.export.serialized_executables import deserialize_and_load as deserialize_and_load
from ..lowering.export.serialized_executables import serialize as serialize
