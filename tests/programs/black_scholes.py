"""Prices of European calls and puts on a grid of strikes, and the greeks to second order."""

import handlax.numpy as jnp
from handlax import grad, jit, lax, vmap


def normal_cdf(x):
    return 0.5 * (1.0 + lax.erf(x / jnp.sqrt(2.0)))


def call(spot, strike, rate, volatility, years):
    width = volatility * jnp.sqrt(years)
    d1 = (jnp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / width
    return spot * normal_cdf(d1) - strike * jnp.exp(-rate * years) * normal_cdf(d1 - width)


def main():
    strikes = jnp.array([80.0, 95.0, 100.0, 105.0, 130.0])
    over = (None, 0, None, None, None)
    at = (100.0, strikes, 0.03, 0.2, 0.75)
    greeks = {
        "delta": grad(call, 0),
        "gamma": grad(grad(call, 0), 0),
        "rho": grad(call, 2),
        "vega": grad(call, 3),
        "vanna": grad(grad(call, 3), 0),
        "theta": lambda *a: -grad(call, 4)(*a),
    }
    price = jit(vmap(call, over))(*at)
    put = price - 100.0 + strikes * jnp.exp(-0.03 * 0.75)
    return {"call": price, "put": put} | {name: jit(vmap(g, over))(*at) for name, g in greeks.items()}


RTOL = 2e-4
