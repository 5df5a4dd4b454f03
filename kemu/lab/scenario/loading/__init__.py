"""From a YAML file to a scenario, or to all of its mistakes at once.

``loader`` calls the steps: ``clusters``, ``controllers``, ``manifests`` (what there is when the clock starts),
``timelines``, ``openb`` (what happens over time), ``matrices`` (variants), ``references`` (whether names lead
anywhere).
"""
