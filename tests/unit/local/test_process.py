import os

from local.process import command_line, runs

TOKEN = "duetime-0123456789abcdef"


def test_a_process_with_the_token_on_its_command_line_is_ours() -> None:
    assert runs(4321, TOKEN, lambda _: f"python -X duetime={TOKEN} -m ministack")


def test_a_pid_given_to_another_program_is_not_ours() -> None:
    assert not runs(4321, TOKEN, lambda _: "vim notes.txt")


def test_a_pid_that_is_gone_is_not_ours() -> None:
    assert not runs(4321, TOKEN, lambda _: "")


def test_no_damaged_record_makes_every_process_ours() -> None:
    assert not runs(4321, "", lambda _: "vim notes.txt")
    assert not runs(0, TOKEN, lambda _: TOKEN)
    assert not runs(-1, TOKEN, lambda _: TOKEN)


def test_the_command_line_of_a_living_process_can_be_read() -> None:
    assert "py" in command_line(os.getpid())


def test_a_pid_beyond_all_pids_has_no_command_line() -> None:
    assert command_line(2**31 - 1).strip() == ""
