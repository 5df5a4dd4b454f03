"""What the containers' programs would do: how long they run, how they end, what they print. Begin at ``courses``.

Nothing runs for real. ``courses`` decides by the spec of a container; ``images`` knows what images run without a
command, and the test image agnhost; ``shells`` carries out scripts, read by ``syntax``, with the commands of ``tools``
on the files of ``files``. ``printouts`` are the logs.
"""
