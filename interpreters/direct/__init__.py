"""Handlers in direct style: functions that are executed and left, replays, effects as values; may import handlers and
what comes before it.
"""
