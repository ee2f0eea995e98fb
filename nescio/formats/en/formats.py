"""Date formats of pages: ISO 8601, unlike the American ones of Django's English.

Inputs accept the formats of Django's English, ISO 8601 first.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i"
