import re

from local.layout import REPOSITORY

MAKEFILE = (REPOSITORY / "Makefile").read_text()


def test_every_target_for_people_says_what_it_does() -> None:
    declared = re.search(r"^\.PHONY: (help .*?)\n\n", MAKEFILE, re.DOTALL | re.MULTILINE)
    assert declared
    described = set(re.findall(r"^([a-z0-9-]+):.*## ", MAKEFILE, re.MULTILINE))
    assert described == set(declared.group(1).replace("\\\n", " ").split())


def test_every_recipe_writes_its_stamp_last() -> None:
    for recipe in re.findall(
        r"^(?:\$\(\w+_READY\)|build/\S+-ready):.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE
    ):
        assert recipe.rstrip().endswith("touch $@"), recipe


def test_make_alone_changes_nothing() -> None:
    assert ".DEFAULT_GOAL := help" in MAKEFILE
