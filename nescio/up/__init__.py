"""`manage.py up`: the whole system as one command, and down again without a trace.

`session` is the order of events; every other module is one of its parts.
"""
