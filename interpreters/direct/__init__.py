"""Handlers in direct style: the handled function is executed, not recorded, and its rest is resumed."""

from __future__ import annotations
