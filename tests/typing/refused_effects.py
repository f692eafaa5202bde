"""Mistakes with operations and effects."""

import handlax as hx


@hx.effect
class Log:
    message: str
    level: int = 0


@hx.effect(vmap="once")
class Read:
    source: str


Log()  # error: call-arg, reportCallIssue
Log(2)  # error: arg-type, reportArgumentType
Log("a", 1, 2)  # error: call-arg, reportCallIssue
Read(title="x")  # error: call-arg, reportCallIssue
Read("x").source = "y"  # error: misc, reportAttributeAccessIssue
hx.effect(vmapped="once")  # error: call-overload, reportCallIssue
hx.effect(vmap="perlane")  # error: call-overload, reportArgumentType
hx.effect(diff="stopped")  # error: call-overload, reportArgumentType
