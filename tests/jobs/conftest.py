from tests.workers.brokers import celery_broker

__all__ = ["celery_broker"]
