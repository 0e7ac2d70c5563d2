"""The steps of packaging/bootstrap.py: standard library only, before anything is installed."""
