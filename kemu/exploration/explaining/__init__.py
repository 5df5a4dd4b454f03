"""Why a run fails: the chain of causes in sentences, a run that passes beside it, pictures, P(failure) over time.

Begin at ``explanations``. ``recordings`` has a run with its messages, ``knowledge`` what each actor knew when, ``steps``
the events of the log in words, ``siblings`` the run that passes, ``chains`` the sentences; ``diagrams``, ``texts`` and
``svgs`` the picture; ``probabilities`` and ``charts`` when the failure was decided.
"""
