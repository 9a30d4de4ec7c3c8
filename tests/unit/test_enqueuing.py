from datetime import timedelta

from duetime.clock import ManualClock
from duetime.due_messages import Patrol
from duetime.enqueuing import Announcer, Change
from duetime.memory_store import MemoryStore
from duetime.patrols import Patrols
from duetime.run import Run
from duetime.status import RunStatus

from tests.factories import NOW, a_job, a_run, claimed_pair
from tests.factories import a_pair as pair
from tests.inline import DueMessages
from tests.unit.test_patrolling import Queues


class Scene:
    def __init__(self) -> None:
        self.store, self.queues, self.due_queue = MemoryStore(), Queues(), DueMessages()
        self.announcer = Announcer(self.store, self.queues, Patrols(self.due_queue), ManualClock(NOW))

    def announce(self, run: Run, was: Run | None = None) -> list[str]:
        self.announcer.announce([Change(run, was)])
        return [key.run_id for key, _ in self.queues.hints]


def test_a_new_run_is_hinted_and_patrols_will_look_after_it() -> None:
    scene = Scene()
    run = a_run(a_job())
    assert scene.announce(run) == [run.run_id]
    first = scene.due_queue.sent[0]
    assert isinstance(first, Patrol)
    assert timedelta(seconds=2) < first.at - run.not_before <= timedelta(seconds=12)


def test_a_run_that_only_got_another_deadline_is_no_news() -> None:
    run = a_run(a_job())
    assert Scene().announce(run.evolve(hints=1, deadline_at=NOW), run) == []


def test_a_run_whose_turn_has_come_is_hinted_again() -> None:
    run = a_run(a_job())
    assert Scene().announce(run.evolve(called_at=NOW), run) == [run.run_id]


def test_a_run_that_failed_an_attempt_is_hinted_for_its_next() -> None:
    running = claimed_pair(pair()).run
    retrying = running.evolve(status=RunStatus.RETRYING)
    assert Scene().announce(retrying, running) == [running.run_id]


def test_a_run_that_started_or_ended_is_no_news() -> None:
    queued = a_run(a_job())
    running = claimed_pair(pair()).run
    assert Scene().announce(running, queued) == []
    assert Scene().announce(running.evolve(status=RunStatus.SUCCEEDED), running) == []
