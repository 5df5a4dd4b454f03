"""Stands in for an agent of a raylet: does nothing, and ends with the raylet. Run as a script.

A raylet starts two helpers in Python, for the dashboard and for runtime environments, of 80 MB and half a second of CPU
time each, and ends when one of them does. kemu uses neither; in place of the other one runs `forks`.
"""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != 1:  # otherwise the raylet had gone before the kernel knew
        signal.pause()
