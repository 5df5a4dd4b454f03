"""One log of the events of all cells.

merges          brings their streams into one order, by ``causes`` and the clocks that ``wall_offsets`` compares
ledgers         what the driver leaves behind when it is killed; ``recoveries`` makes the log from that and the segments
"""
