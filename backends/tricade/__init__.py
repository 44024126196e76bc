"""The stages of a cascade as pure functions of arrays, and the one file that knows Triton's stub."""
