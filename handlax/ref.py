"""Mutable references as functions, beside the indexing of ``handlax.Ref``."""

from .interpreters.references.reference import Ref as Ref
from .interpreters.references.reference import addupdate as addupdate
from .interpreters.references.reference import freeze as freeze
from .interpreters.references.reference import get as get
from .interpreters.references.reference import new_ref as new_ref
from .interpreters.references.reference import set as set
from .interpreters.references.reference import swap as swap
