"""The parts that pip installs and that run without a server of their own.

PostgreSQL with pgvector from a wheel, a broker made of files, two small models: what
`make up` and the tests run on. Nothing here imports Django, so that the settings may.
"""
