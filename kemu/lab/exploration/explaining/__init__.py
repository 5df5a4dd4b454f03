"""Why a run fails: the chain of causes in sentences, a run that passes beside it, pictures, P(failure) over time.

Begin at ``explanations``. ``recordings`` has a run with its messages, ``knowledge`` what each actor knew, ``steps`` the
events of the log in words, ``tellings`` all of these; ``siblings`` finds the run that passes, ``differences`` where the
two part, ``concerns`` what the failure is about, ``chains`` the sentences; ``diagrams``, ``texts`` and ``svgs`` are the
picture, ``reports`` the files.
"""
