"""Which handler does which kind of job: the one place where work is composed."""

from jobs.run import Handler

HANDLERS: dict[str, Handler] = {}
