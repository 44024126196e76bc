"""Measurements: ratios of ways to do the same work, taken in turns within one run."""
