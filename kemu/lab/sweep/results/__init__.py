"""The results of runs as tables, in one Parquet file.

tables      the tables and their columns, with units: what docs/results.md lists
rows        from one run to its rows
journals    the cells of a sweep that are over, on disk
files       the Parquet file
folders     the results of a sweep, of a run or of a matrix, wherever the user points
queries     SQL over the tables
"""
