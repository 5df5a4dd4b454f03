"""Running a recorded run again.

replays      the same run, compared event by event
recoveries   the log and the verdict of a run that was killed
"""
