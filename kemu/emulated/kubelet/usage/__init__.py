"""What pods and the machine use over time: begin at ``usages``, which reads the annotation of a pod.

``meters`` reads it from the object alone, ``curves`` has the forms that usage can take, ``machines`` adds them up,
``stats`` holds the numbers as the summary API shows them, ``storage_limits`` says how much local storage a pod may use.
"""
