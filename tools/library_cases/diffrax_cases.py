"""Differential equations of diffrax."""

import diffrax
import jax
import jax.numpy as jnp

Y = jnp.array([1.0, 0.5])


def _oscillator(t, y, args):
    return jnp.stack([y[1], -args * y[0]])


def _solve(args, solver, **options):
    options = {"stepsize_controller": diffrax.PIDController(1e-5, 1e-6), **options}
    return diffrax.diffeqsolve(diffrax.ODETerm(_oscillator), solver, 0.0, 2.0, 0.1, Y, args, **options).ys


def explicit_methods():
    return _solve(2.0, diffrax.Tsit5(), saveat=diffrax.SaveAt(ts=jnp.linspace(0, 2, 5))), _solve(2.0, diffrax.Dopri5())


def implicit_methods():
    return _solve(2.0, diffrax.Kvaerno3())


def constant_steps():
    return _solve(2.0, diffrax.Heun(), stepsize_controller=diffrax.ConstantStepSize())


def gradients():
    last = lambda args, **how: _solve(args, diffrax.Tsit5(), **how)[-1].sum()
    return jax.grad(last)(2.0), jax.grad(lambda a: last(a, adjoint=diffrax.BacksolveAdjoint()))(2.0)


def stochastic_equations():
    path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-3, (2,), jax.random.key(0))
    terms = diffrax.MultiTerm(
        diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.eye(2), path))
    return diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.05, Y).ys


def many_at_once():
    return jax.vmap(lambda a: _solve(a, diffrax.Tsit5()))(jnp.array([1.0, 2.0, 3.0]))


def adjoints():
    kinds = (diffrax.RecursiveCheckpointAdjoint(), diffrax.DirectAdjoint(), diffrax.ForwardMode())
    last = lambda args, adjoint: _solve(args, diffrax.Tsit5(), adjoint=adjoint, max_steps=64)[-1].sum()
    slopes = [jax.jacfwd(last)(2.0, kind) if kind is kinds[2] else jax.grad(last)(2.0, kind) for kind in kinds]
    return slopes


def dense_output_and_events():
    term = diffrax.ODETerm(_oscillator)
    dense = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 2.0, 0.1, Y, 2.0, saveat=diffrax.SaveAt(dense=True))
    event = diffrax.Event(lambda t, y, args, **_: y[0])
    stopped = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 9.0, 0.1, Y, 2.0, event=event)
    return dense.evaluate(0.7), dense.derivative(0.7), stopped.ts, stopped.stats["num_steps"] > 0


def stochastic_solvers():
    def solve(key, solver, levy):
        path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (2,), key, levy_area=levy)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y), diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.diag(y), path))
        return diffrax.diffeqsolve(terms, solver, 0.0, 1.0, 0.05, Y).ys

    keys = jax.random.split(jax.random.key(1), 3)
    return (
        jax.vmap(lambda k: solve(k, diffrax.ItoMilstein(), diffrax.BrownianIncrement))(keys),
        solve(keys[0], diffrax.SPaRK(), diffrax.SpaceTimeLevyArea),
        solve(keys[0], diffrax.Heun(), diffrax.BrownianIncrement))
