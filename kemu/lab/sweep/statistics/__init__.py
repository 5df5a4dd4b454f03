"""What results say beyond chance. docs/statistics.md names the methods.

samples      a metric of one variant, by seed, as exactly as the runs tell it
intervals    intervals of means, differences, ratios and shares
waiting      waiting times with censoring: Kaplan-Meier
claims       the syntax of claims
judging      whether claims hold, fail, or need more seeds
"""
