"""Whether kemu decides as Kubernetes does: recorded decisions of the real code, compared with those of kemu's code.

:mod:`.registry` names the kinds of cases, :mod:`.case_files` reads them, :mod:`.agreements` asks and counts. Modules in
the folders translate the cases of some families, start the code that runs in production (actors on a
:mod:`control plane <.control_planes>` in virtual time), and translate the result. The command is ``kemu conformance``.
"""
