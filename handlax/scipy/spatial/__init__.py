"""``handlax.scipy.spatial``: rotations of space."""

from . import transform as transform
