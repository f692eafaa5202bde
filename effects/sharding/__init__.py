"""Meshes of devices, partition specs, and shardings of arrays over them; may import base and types."""
