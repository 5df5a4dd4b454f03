"""The checks of kinds that extend the API.

admission_registration  the checks of webhooks' configurations, of admission policies and their bindings
definitions             the checks of CustomResourceDefinitions
"""
