"""The error of a refused request."""


class RefusedError(Exception):
    """The API refused a request. `code` is one of its documented codes; decide by it, not by the message."""

    def __init__(self, status: int, code: str, message: str, request_id: str | None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        #: For a report to the operator of the API.
        self.request_id = request_id
