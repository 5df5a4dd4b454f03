"""Running a recorded run again.

replays           the same run, compared event by event
log_differences   where two logs part
recoveries        the log and the verdict of a run that was killed
"""
