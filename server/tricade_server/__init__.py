"""Starts Triton over a rendered repository, loads what fits, and takes it down again without a trace."""
