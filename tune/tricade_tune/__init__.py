"""Which instances, batches and delays a pipeline needs for a latency at a rate, tried on the real server."""
