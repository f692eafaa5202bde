"""Elementwise operations: conversion, comparison, complex parts, bits, arithmetic, transcendental functions; may
import foundations and what comes before it.
"""
