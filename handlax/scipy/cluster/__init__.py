"""``handlax.scipy.cluster``: vectors grouped by their distances."""

from . import vq as vq
