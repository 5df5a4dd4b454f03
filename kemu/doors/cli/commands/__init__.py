"""The commands of kemu, a module each: ``add_to`` declares it, ``command`` carries it out.

clusters     clusters that stay up: ``up``, ``step``, ``chaos``, ``scheduler``, ``nodes``, ``calibrate``,
             ``ray``, ``envtest-assets``
figures      what runs came to: ``csv``, ``plot``, ``results``, ``report``
runs         single runs: ``import``, ``run``, ``replay``, ``recover``, ``explain``, ``story``, ``trace``, ``scenarios``
searches     many runs: ``explore``, ``fuzz``, ``hunt``, ``shrink``, ``sweep``, ``compare``
demo         ``demo``: a race at once
doctor       ``doctor``: what a machine lacks
completion   ``completion``: scripts of shells; man pages
bench        ``bench``: measurements
conformance  ``conformance``: comparisons with Kubernetes
"""
