"""``handlax.scipy.cluster``: clustering of vectors."""

from . import vq as vq
