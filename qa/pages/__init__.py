"""The pages of whoever asks: ask, past answers, votes. Server-rendered, with HTMX.

Every page works by plain forms and links too; HTMX makes it live.
"""
