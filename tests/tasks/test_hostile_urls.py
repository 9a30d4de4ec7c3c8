"""A table of URLs that would turn a worker against its own network, each refused for its reason."""

import socket
from typing import Any

import pytest
from duetime.errors import InvalidField, PermanentFailure
from duetime.job import JobSpec
from duetime.targets import AllowedTargets
from duetime.tasks import check_task, execute
from duetime.timing import ScheduleType, Timing

from tests.listener import Answer, listening
from tests.tasks.conftest import ALLOWED, a_context

NOWHERE = AllowedTargets().reach_of("arn:aws:iam::1:role/mallory")
NOT_PUBLIC = "which is not a public address"
NO_URL = "must be an http or https URL with a host"

LITERAL = [
    "http://127.0.0.1/",
    "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://172.16.5.4/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/latest/meta-data/",
    "http://0xa9fea9fe/",
    "http://169.254.170.2/v2/credentials/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:5601:5601]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fc00::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "https://127.0.0.1:443/",
]
MALFORMED = [
    ("http://user@127.0.0.1/", "user name or password"),
    ("http://example.com@127.0.0.1/", "user name or password"),
    ("http://127.0.0.1:80@example.com/", "user name or password"),
    ("http://example.com\\@127.0.0.1/", "backslashes"),
    ("http://127.0.0.1\\.example.com/", "backslashes"),
    ("http://127.0.0.1%00.example.com/", NO_URL),
    ("http://example.com /", "spaces"),
    ("http://exa\tmple.com/", "control characters"),
    ("http://example.com/\r\nX-Evil: 1", "control characters"),
    ("http://①②⑦.⓪.⓪.①/", "outside ASCII"),
    ("http://127。0。0。1/", "outside ASCII"),
    ("file:///etc/passwd", NO_URL),
    ("gopher://127.0.0.1:6379/_FLUSHALL", NO_URL),
    ("ftp://example.com/", NO_URL),
    ("dict://127.0.0.1:11211/stats", NO_URL),
    ("//169.254.169.254/", NO_URL),
    ("http:///etc/passwd", NO_URL),
    ("http://", NO_URL),
    ("http://[::1/", "is not a URL"),
    ("http://example.com:0/", NO_URL),
    ("http://example.com:99999/", "is not a URL"),
    ("http://-example.com/", NO_URL),
]
NAMES = [
    ("http://localhost/", "127.0.0.1"),
    ("http://LOCALHOST:8080/", "127.0.0.1"),
    ("http://localhost./", "127.0.0.1"),
    ("http://anything.localhost/", "127.0.0.1"),
    ("http://127.0.0.1.nip.io/", "127.0.0.1"),
    ("http://metadata.google.internal/", "169.254.169.254"),
    ("http://instance-data/latest/", "169.254.169.254"),
    ("http://db.internal/", "10.20.30.40"),
    ("http://six.example.com/", "::1"),
    ("http://mapped.example.com/", "::ffff:169.254.169.254"),
]


def spec_of(url: str) -> JobSpec:
    timing = Timing(schedule_type=ScheduleType.IMMEDIATE)
    return JobSpec(name="x", timing=timing, task={"type": "http", "url": url})


@pytest.mark.parametrize("url", LITERAL)
def test_an_address_is_refused_when_the_job_is_written_and_when_it_runs(url: str) -> None:
    with pytest.raises(InvalidField, match=NOT_PUBLIC) as refused:
        check_task(spec_of(url), NOWHERE)
    assert refused.value.field == "task"
    with pytest.raises(PermanentFailure, match=NOT_PUBLIC):
        execute(a_context({"type": "http", "url": url}), NOWHERE)


@pytest.mark.parametrize(("url", "reason"), MALFORMED)
def test_what_different_parsers_read_differently_is_refused(url: str, reason: str) -> None:
    with pytest.raises(InvalidField, match=reason) as refused:
        check_task(spec_of(url), NOWHERE)
    assert refused.value.field == "task.url"


@pytest.mark.parametrize(("url", "address"), NAMES)
def test_a_name_is_judged_by_where_it_leads_and_nothing_is_sent(
    url: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def resolve(host: str, port: int, **_: Any) -> Any:
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    def connect(*_: Any, **__: Any) -> Any:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(PermanentFailure, match=NOT_PUBLIC):
        execute(a_context({"type": "http", "url": url}), NOWHERE)


def test_a_name_that_answers_differently_the_second_time_gains_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter(["93.184.216.34", "127.0.0.1"])
    connected: list[str] = []

    def resolve(host: str, port: int, **_: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    def connect(address: tuple[str, int], **_: Any) -> Any:
        connected.append(address[0])
        raise OSError("enough")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Exception, match="enough"):
        execute(a_context({"type": "http", "url": "http://rebind.example.com/"}), NOWHERE)
    assert connected == ["93.184.216.34"]


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "//10.0.0.1/",
        "http://2852039166/",
    ],
)
def test_a_redirect_is_judged_like_the_first_url(location: str) -> None:
    with listening(lambda _: Answer(302, headers={"Location": location})) as listener:
        task = {"type": "http", "url": listener.url, "redirects": "follow"}
        context = a_context(task)
        with pytest.raises(PermanentFailure, match=NOT_PUBLIC):
            execute(context, ALLOWED.reach_of(context.owner))


@pytest.mark.parametrize(
    ("location", "reason"),
    [("file:///etc/passwd", NO_URL), ("http://a@127.0.0.1/", "user name"), ("gopher://x/", NO_URL)],
)
def test_a_redirect_that_is_no_url_is_refused(location: str, reason: str) -> None:
    with listening(lambda _: Answer(302, headers={"Location": location})) as listener:
        task = {"type": "http", "url": listener.url, "redirects": "follow"}
        context = a_context(task)
        with pytest.raises(PermanentFailure, match=reason):
            execute(context, ALLOWED.reach_of(context.owner))


def test_the_table_is_long_enough() -> None:
    assert len(LITERAL) + len(MALFORMED) + len(NAMES) >= 40
