"""``handlax.scipy.integrate``: integrals of samples."""

from ..numpy.mathematics.differences import trapezoid as trapezoid
