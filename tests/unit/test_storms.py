"""The first few one by one, the rest in one summary."""

from datetime import timedelta

from duetime.notice_text import word_summary
from duetime.notices import Notice
from duetime.notify import NoticeEvent
from duetime.storms import ONE_BY_ONE, WINDOW, Window, judge, window_at

from tests.factories import NOW, OWNER

KEY = window_at("subscription:1", NoticeEvent.FAILED, NOW)


def notices(count: int, jobs: int = 1, start: int = 0) -> list[Notice]:
    return [
        Notice(
            notice_id=f"n{number}",
            event=NoticeEvent.FAILED,
            owner=OWNER,
            job_id=f"job-{number % jobs}",
            job_name=f"Job {number % jobs}",
            at=NOW + timedelta(seconds=number),
            error=f"error {number}",
        )
        for number in range(start, start + count)
    ]


def test_windows_do_not_overlap_and_leave_no_gap() -> None:
    assert KEY.starts_at <= NOW < KEY.ends_at
    assert window_at("subscription:1", NoticeEvent.FAILED, KEY.ends_at).starts_at == KEY.ends_at
    assert window_at("subscription:1", NoticeEvent.FAILED, KEY.ends_at - timedelta.resolution) == KEY
    assert KEY.ends_at - KEY.starts_at == WINDOW


def test_the_first_five_are_told_and_the_others_counted() -> None:
    window, tell = judge(Window(KEY), notices(12))
    assert [notice.notice_id for notice in tell] == ["n0", "n1", "n2", "n3", "n4"]
    assert window.held == 12 - ONE_BY_ONE


def test_one_that_comes_again_is_told_again_and_takes_no_other_ones_place() -> None:
    window, _ = judge(Window(KEY), notices(3))
    again, tell = judge(window, notices(3))
    assert (again, len(tell)) == (window, 3)
    full, tell = judge(again, notices(3, start=3))
    assert ([notice.notice_id for notice in tell], full.held) == (["n3", "n4"], 1)


def test_a_summary_says_how_many_of_how_many_jobs_and_when() -> None:
    window, _ = judge(Window(KEY), notices(42, jobs=12))
    text = word_summary(window, OWNER).content["data"]["text"]
    assert text == (
        "37 more runs of 12 jobs failed between 2026-11-18T07:00:05.123Z and 2026-11-18T07:00:41.123Z"
    )
    assert word_summary(window, OWNER).content["data"]["last_error"] == "error 41"


def test_the_names_of_a_few_jobs_are_kept_however_many_there_are() -> None:
    window, _ = judge(Window(KEY), notices(1000, jobs=500))
    assert (window.held, len(window.jobs), window.more_jobs) == (995, 20, True)
    wording = word_summary(window, OWNER)
    assert wording.headline.startswith("995 more runs of more than 20 jobs failed between")
    assert len(wording.subject) <= 100


def test_one_alone_is_said_of_one() -> None:
    window, _ = judge(Window(KEY), notices(6))
    assert word_summary(window, OWNER).headline.startswith("1 more run of 1 job failed between")


def test_a_windows_summary_always_has_the_same_id() -> None:
    window, _ = judge(Window(KEY), notices(6))
    more, _ = judge(window, notices(6, start=6))
    assert word_summary(window, OWNER).message_id == word_summary(more, OWNER).message_id
