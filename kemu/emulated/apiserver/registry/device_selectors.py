"""What is wrong with selectors of devices, in Kubernetes' words (``validateCELSelector``)."""

from __future__ import annotations

from kemu.emulated.objects.validation import devices


def problem(text: str) -> str:
    """What is wrong; "": nothing. Nothing of the language is imported before the first selector."""
    from kemu.emulated.cel import devices as selectors

    program = selectors.compiled(text)
    if isinstance(program, str):
        return program
    return devices.TOO_COMPLEX if program.estimate(selectors.DEVICE).high > selectors.MAX_COST else ""
