from typing import Any


def greet(payload: Any, duetime: dict[str, Any]) -> dict[str, Any]:
    """Whatever a function returns is the run's result; whatever it raises is the attempt's error."""
    name = (payload or {}).get("name", "world")
    return {"greeting": f"Hello, {name}!", "attempt": duetime["attempt"]}
