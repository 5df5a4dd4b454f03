"""Testing with pytest (docs/testing.md). ``kemu.testing`` has the helpers for tests of single actors.

pytest_plugin        options, markers, fixtures; imports nothing of kemu until a test needs it
pytest_names         names that the plugin and its items share
pytest_items         a test in virtual time as an item of pytest, and how its failure reads
repetitions          running a test again and again
runnables            what is run: a program or a scenario
program_strategies   how the runs of a program differ
up_reports           what pytest prints of a failed test with a cluster of kemu up
tapes                recorded failures, which can be run again
"""
