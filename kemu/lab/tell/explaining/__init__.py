"""Why a run fails: the chain of causes in sentences, a run that passes beside it, pictures, P(failure) over time.

explanations    where to begin: an explanation, from its scenario
recordings      a run with its messages                       knowledge      what each actor knew
steps           the events of the log in words                tellings       a run as steps, with all of these
siblings        the run that passes                           differences    where the two part
mentions        what the failure is about                     chains         the sentences
losses          why a pod lost in a run that holds            names          how actors and objects are called
diagrams        actors, decisions and messages in columns     drawings       in text, as SVG, charts
probabilities   P(failure) over time                          reports        an explanation as files
"""
