"""Pictures of results, from their tables alone. ``kemu plot`` draws them; docs/plots.md shows them.

    pictures          which pictures there are, and how they become SVG, PDF and PNG
    waiting_curves    how many pods are bound within a time, by priority: Kaplan-Meier
    metric_curves     a metric over a value that varies: starvation over load, conflicts over schedulers
    fronts            two metrics against each other, and the variants that no other beats
    occupancy         how full each node is over time
    sources           what is read from the tables
    pages             how a picture fits a page: size, fonts, title, names
    styles            colours, fonts and words that all pictures share

The same results give the same bytes on every machine: the renderer brings its fonts along, and nothing is random.
"""
