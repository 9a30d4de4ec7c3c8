"""Benchmarks: they print what they measured, and fail for nothing but a job that was lost, doubled or early."""
