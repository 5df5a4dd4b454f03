"""The runtime of real programs: actors of this process on the wall clock beside processes that kemu did not write.

runtime    starts both, carries out faults, and says when a run is over
programs   one program: its command line, its process, its log
merging    brings what is heard late, from logs and watches, into the order of its times
"""
