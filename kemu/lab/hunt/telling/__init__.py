"""What is left of a hunt.

reports     the folder of a finding: text, picture, plan, tests
summaries   the hunt in words: findings, coverage
"""
