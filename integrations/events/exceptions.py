from accounts.exceptions import ConflictError, NescioError


class WebhookAddressError(NescioError):
    code = "webhook_address"


class EndpointStateError(ConflictError):
    code = "endpoint_state"
