from local.logs import last_words


def test_a_synthesis_is_explained_by_the_apps_own_error() -> None:
    log = """Traceback (most recent call last):
  File "infra/app.py", line 5, in <module>
RuntimeError: Cannot find asset at functions/nowhere
python -m infra.app: Subprocess exited with error 1
"""
    assert last_words(log) == "RuntimeError: Cannot find asset at functions/nowhere"


def test_a_deployment_is_explained_by_the_error_and_not_by_what_follows_it() -> None:
    log = """duetime-local: creating stack...
\x1b[31m❌  duetime-local failed to deploy\x1b[39m
‣ ValidationError: Unrecognized resource types: [AWS::Nothing::Here]
85 feature flags are not configured. Run 'cdk flags' to learn more.
"""
    assert last_words(log) == "ValidationError: Unrecognized resource types: [AWS::Nothing::Here]"


def test_where_nothing_sounds_like_a_cause_the_last_line_is_given() -> None:
    assert last_words("one\ntwo\n\n") == "two"


def test_a_silent_program_is_said_to_be_silent() -> None:
    assert last_words("\n") == "it said nothing"
