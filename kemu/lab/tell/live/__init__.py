"""The page of ``kemu report`` while the run goes on: ``kemu run --live``, ``kemu explore --live``.

A process of its own serves it, so that no browser can hold the run up: it follows the run log as a file. What a browser
has not read yet waits in that file, and nowhere else.

processes  starts that process, and tells it what it cannot see in the files
runs       what is followed: run logs one after the other, their folds, the data of the page
causes     why a run went wrong so far, at a stated pace
streams    the events of a run log for one browser: server-sent events that a browser can take up again
servers    the HTTP server: loopback only, with a token, for one host name; ``__main__``, the process
"""
