"""The command line: parsing, errors, pipes and interrupts; its commands are in ``commands``.

collectors    the options of commands that send traces to a collector, and the sending
exits         exit codes of all commands
failures      whatever ends a command without a result: told in words, or as the one object of ``--json``
finds         what a search has found, for its report: each failure as a run of its own, made again in memory
inputs        the scenario that a command is given: a file, the name of a shipped one, or ``-`` for standard input
live_pages    ``--live``: the options, the page that is served meanwhile, and what happens to it at the end
main          the entry point: which command, and what becomes of its errors (``failures``)
parsers       how kemu reads its command line: argparse, with mistakes told in one sentence and the nearest right word
programs      how the user calls kemu
progress      how far a run is: a line on a terminal, nothing elsewhere (the result is enough there)
reports       makes the HTML report of a run folder, and gathers what explains each run
resuming      ``kemu run --resume``: goes on with a run whose process was killed
run_folders   run folders as commands are given them: which variant is meant, and what the run has left there
"""
