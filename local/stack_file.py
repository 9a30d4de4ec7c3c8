"""local/stack.json: what tools and tests need to know of the running stack."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path

from local.credentials import AccessKey
from local.records import read_record, write_record


@dataclass(frozen=True)
class StackFile:
    api_url: str
    region: str
    access_key_id: str
    secret_access_key: str
    endpoint_url: str
    stack_name: str

    @property
    def access_key(self) -> AccessKey:
        return AccessKey(self.access_key_id, self.secret_access_key)


def write_stack_file(path: Path, stack: StackFile) -> None:
    write_record(path, asdict(stack))


def read_stack_file(path: Path) -> StackFile | None:
    record = read_record(path) or {}
    names = [field.name for field in fields(StackFile)]
    if not all(isinstance(record.get(name), str) for name in names):
        return None
    return StackFile(**{name: record[name] for name in names})
