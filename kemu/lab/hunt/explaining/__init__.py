"""Why a trial went wrong.

causes      in a sentence: the write, the version that had been read, the change that had not been seen
pictures    as a space-time picture
tellings    line by line: what happened, what controllers were told and wrote
"""
