"""A property-based test harness for operations and handlers. Needs the extra ``test``."""

from __future__ import annotations

from .laws import LAWS as LAWS
from .laws import Law as Law
from .laws import assert_close as assert_close
