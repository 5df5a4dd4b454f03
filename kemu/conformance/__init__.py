"""Whether kemu decides as Kubernetes does: recorded decisions of the real code, asked again, answered by kemu's code.

:mod:`kemu.conformance.registry` names the kinds of cases, :mod:`kemu.conformance.cases` reads files of them,
:mod:`kemu.conformance.reports` asks and counts. The command is ``kemu conformance``.
"""
