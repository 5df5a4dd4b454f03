"""Metrics under the names of the real components, and as Prometheus reads them.

families   names, types, labels and buckets
values     the values of the moment
texts      values in the text format of Prometheus
"""
