"""The HTTP edge: who calls, what they may send, how answers and errors look. Only job_service and job_search import
it; it costs them pydantic, which the functions on a job's path do without."""
