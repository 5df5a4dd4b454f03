"""Whether kemu decides as Kubernetes does: recorded decisions of the real code, asked again, answered by kemu's code.

:mod:`kemu.conformance.registry` names the kinds of cases, :mod:`kemu.conformance.case_files` reads files of them,
:mod:`kemu.conformance.agreements` asks and counts. The command is ``kemu conformance``.
"""
