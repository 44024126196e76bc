"""Measurements on a GPU host: what the networks of `weighty` give alone, and what the served cascade makes of them."""
