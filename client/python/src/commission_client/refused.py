"""The error of a refused request."""


class RefusedError(Exception):
    """The API refused a request.

    `code` is one of its documented codes, or "unknown" if something before the API answered. Decide by it, not by the
    message or the status: a 404 of a proxy is no missing record.
    """

    def __init__(self, status: int, code: str, message: str, request_id: str | None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        #: For a report to the operator of the API.
        self.request_id = request_id
