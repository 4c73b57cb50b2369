"""Chaos: a seed gives a sequence of faults, and after each of them every promise must stand."""
