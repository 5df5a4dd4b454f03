"""Commands that show what runs came to: tables, queries, pictures, the page in the browser.

artefact        ``kemu artefact``: a folder that makes every figure of a paper, from artefact_files
csv_files       ``kemu csv``: the figures of a run as a CSV file
mean_tables     means of metrics with intervals, and tables in LaTeX
plot            ``kemu plot``: pictures of the results of a sweep, a run or a matrix
query_answers   how ``kemu results`` prints the answer to a query: as text, CSV, JSON or LaTeX
report          ``kemu report``: a run, or a matrix of them, as one HTML file
results         ``kemu results``: the tables of a sweep, a run or a matrix, by SQL, as text, CSV, JSON or LaTeX
sweep_progress  how far a sweep is, and how long it still takes
sweep_reports   what ``kemu sweep`` shows at its end: the variants, the claims
"""
