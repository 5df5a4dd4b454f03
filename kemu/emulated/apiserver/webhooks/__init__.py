"""What the API server asks of processes outside: webhooks of admission, and of the conversion of custom objects.

clients    asks one webhook, by its URL or its Service
"""
