from typing import Any

from local.warming import _callees


class Lambda:
    def list_functions(self) -> Any:
        return {
            "Functions": [{"FunctionName": name} for name in ("duetime-local-a", "duetime-local-b", "demo-1")]
        }

    def list_event_source_mappings(self) -> Any:
        arns = [
            f"arn:aws:lambda:::function:{name}" for name in ("duetime-local-b", "duetime-local-b", "demo-1")
        ]
        return {"EventSourceMappings": [{"FunctionArn": arn} for arn in arns]}


def test_only_duetimes_own_functions_are_woken_each_as_often_as_it_will_be() -> None:
    assert sorted(_callees(Lambda())) == ["duetime-local-a", "duetime-local-b", "duetime-local-b"]
