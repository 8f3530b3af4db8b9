"""Every error the Router raises, as one tree.

    Failure
    ├── Invalid · TooLarge · WrongMediaType · KeyReused · Unsupported    not as written
    ├── StreamingOff                                                     not in this deployment
    ├── Unauthenticated · Forbidden · NotFound (UploadMissing)           not for this caller
    ├── NotRunning · NotRunningYet · Destroyed                           not in this state
    ├── NoPool · StoreBusy · TooSlow · Internal                          not now
    └── ProviderFailure                        what a pool answered
        ├── Refused                            surely no effect
        │   ├── Capacity · RateLimited · Quota · Region                  ask elsewhere
        │   ├── Outage · PoolUnsupported · BrokenPool · PoolRemoved      ask elsewhere
        │   └── Permission · Policy · Rejected (CaptureGone) · Conflicted    final
        ├── Gone                               the provider has no such instance
        ├── FileMissing                        the instance lives, the path does not
        └── Unknown                            the effect may have happened
            └── ProtocolBroken                 the answer cannot be used

A class is a problem type: `code`, `klass`, `status` and the rest are class attributes, so the test
that maps every class to its problem document needs no second table. Messages are ours: provider
text never enters.
"""

from __future__ import annotations

from typing import ClassVar

from .failure_class import Effect, FailureClass


class Failure(Exception):
    """Root of the tree; carries what a client may be told and nothing else."""

    code: ClassVar[str] = "internal"
    klass: ClassVar[FailureClass] = FailureClass.INTERNAL
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong in the Router"
    retryable: ClassVar[bool] = False
    effect: ClassVar[Effect] = Effect.NONE

    def __init__(
        self,
        detail: str = "",
        *,
        retry_after: int | None = None,
        fields: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """detail: shown to the client. retry_after: seconds. fields: (path, reason) pairs."""
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.retry_after = retry_after
        self.fields = fields


class Invalid(Failure):
    """The request does not satisfy the contract."""

    code, klass, status = "invalid_request", FailureClass.INVALID, 400
    title = "The request is not valid"


class TooLarge(Invalid):
    """A body or field is over a documented limit."""

    code, status = "too_large", 413
    title = "The request is over a limit"


class WrongMediaType(Invalid):
    """The body is not of a content type this operation takes."""

    code, status = "unsupported_media_type", 415
    title = "The content type is not supported here"


class KeyReused(Failure):
    """The idempotency key belongs to another request body."""

    code, klass, status = "idempotency_key_reused", FailureClass.CONFLICT, 422
    title = "This idempotency key was used with another body"


class Unsupported(Failure):
    """No pool can enforce an option the caller set."""

    code, klass, status = "unsupported", FailureClass.UNSUPPORTED, 422
    title = "No pool can serve this request as written"


class StreamingOff(Failure):
    """This deployment's integrations do not stream."""

    code, klass, status = "streaming_off", FailureClass.UNSUPPORTED, 501
    title = "This deployment does not stream"


class Unauthenticated(Failure):
    """No valid API key came with the request."""

    code, klass, status = "unauthenticated", FailureClass.PERMISSION, 401
    title = "A valid API key is required"


class Forbidden(Failure):
    """The API key lacks the scope for this operation."""

    code, klass, status = "forbidden", FailureClass.PERMISSION, 403
    title = "This API key may not do that"


class NotFound(Failure):
    """Nothing there, or nothing the caller may see: the same answer."""

    code, klass, status = "not_found", FailureClass.NOT_FOUND, 404
    title = "Not found"


class UploadMissing(NotFound):
    """The id of an upload is none of this sandbox's, or no bytes were put by its URL."""

    code = "upload_not_found"
    title = "Nothing was uploaded under this id, or more than a day ago"


class NotRunning(Failure):
    """The sandbox is not in a state that can serve this call."""

    code, klass, status = "not_running", FailureClass.CONFLICT, 409
    title = "The sandbox is not running"


class NotRunningYet(NotRunning):
    """The sandbox is on its way to running: try again soon."""

    code, retryable = "not_running_yet", True
    title = "The sandbox is not running yet"


class Destroyed(Failure):
    """The sandbox was destroyed while this request was under way."""

    code, klass, status = "destroyed", FailureClass.CONFLICT, 409
    title = "The sandbox was destroyed meanwhile"
    effect = Effect.DONE


class NoPool(Failure):
    """Every eligible pool was asked and none could serve it now."""

    code, klass, status, retryable = "no_pool_available", FailureClass.CAPACITY, 503, True
    title = "No pool could serve this now"


class StoreBusy(Failure):
    """The Router's own store did not take the write in time."""

    code, klass, status, retryable = "store_busy", FailureClass.OUTAGE, 503, True
    title = "The Router's store is busy"
    effect = Effect.UNKNOWN


class TooSlow(Failure):
    """A file could not be copied in the time a call may take: no part of it is anywhere."""

    code, klass, status = "too_slow", FailureClass.OUTAGE, 504
    title = "The file could not be copied in time"


class Internal(Failure):
    """A fault of ours."""


class ProviderFailure(Failure):
    """A pool's answer that is not success. `elsewhere`: may another pool be asked? `cools`: does
    the next sandbox ask the others first for a while?
    """

    code, klass, status = "provider_failure", FailureClass.OUTAGE, 502
    title = "The provider did not do it"
    elsewhere: ClassVar[bool] = False
    temporary: ClassVar[bool] = False
    cools: ClassVar[bool] = False


class Refused(ProviderFailure):
    """The provider surely did nothing."""

    code = "provider_refused"


class Capacity(Refused):
    """The provider has no room for this shape."""

    code, klass, status = "provider_capacity", FailureClass.CAPACITY, 503
    elsewhere = temporary = cools = retryable = True
    title = "The provider has no capacity"


class RateLimited(Refused):
    """The account is temporarily rate-limited."""

    code, klass, status = "provider_rate_limited", FailureClass.RATE_LIMITED, 503
    elsewhere = temporary = cools = retryable = True
    title = "The provider limits this account's rate"


class Quota(Refused):
    """An account quota, plan limit or balance is exhausted."""

    code, klass, status = "provider_quota", FailureClass.QUOTA, 503
    elsewhere = cools = True
    title = "The provider account's quota is exhausted"


class Region(Refused):
    """The requested location is unavailable."""

    code, klass, status = "provider_region", FailureClass.REGION, 503
    elsewhere = True
    title = "The provider cannot serve this region"


class Outage(Refused):
    """The request was surely never sent, or its answer is listed as an outage."""

    code, klass, status = "provider_outage", FailureClass.OUTAGE, 503
    elsewhere = temporary = cools = retryable = True
    title = "The provider cannot be reached"


class PoolUnsupported(Refused):
    """The provider says it cannot do this with this account."""

    code, klass, status = "provider_unsupported", FailureClass.UNSUPPORTED, 422
    elsewhere = True
    title = "The provider does not support this"


class BrokenPool(Refused):
    """The provider rejects our credential (401): our fault, never the client's."""

    code, klass, status = "pool_broken", FailureClass.OUTAGE, 503
    elsewhere = True
    title = "A pool's credential is not accepted"


class PoolRemoved(Refused):
    """The pool is no longer configured: nobody can be asked there until it is again."""

    code, klass, status = "pool_removed", FailureClass.OUTAGE, 503
    elsewhere = True
    title = "The pool this is in is no longer configured"


class Permission(Refused):
    """The provider refuses this for lack of permission (403)."""

    code, klass, status = "provider_permission", FailureClass.PERMISSION, 403
    title = "The provider does not permit this"


class Policy(Refused):
    """The provider refuses this by policy."""

    code, klass, status = "provider_policy", FailureClass.POLICY, 403
    title = "The provider refuses this by policy"


class Rejected(Refused):
    """The provider says the request is wrong."""

    code, klass, status = "provider_rejected", FailureClass.INVALID, 422
    title = "The provider rejects this request"


class CaptureGone(Rejected):
    """The provider has no such capture: nothing can be made of the snapshot any more."""

    code = "snapshot_gone"
    title = "The provider no longer has this snapshot"


class Conflicted(Refused):
    """The instance is in a state or transition that forbids this now."""

    code, klass, status = "provider_conflict", FailureClass.CONFLICT, 409
    temporary = retryable = True
    title = "The provider reports a conflicting state"


class Gone(ProviderFailure):
    """The provider has no such instance."""

    code, klass, status = "instance_gone", FailureClass.NOT_FOUND, 409
    title = "The provider no longer has this sandbox"


class FileMissing(ProviderFailure):
    """The path does not exist in the sandbox."""

    code, klass, status = "file_not_found", FailureClass.NOT_FOUND, 404
    title = "No such file or directory in the sandbox"


class Unknown(ProviderFailure):
    """Nobody can say whether the effect happened."""

    code, klass, status = "unknown_outcome", FailureClass.UNKNOWN_OUTCOME, 502
    effect = Effect.UNKNOWN
    title = "The provider's answer was lost; the effect may have happened"


class ProtocolBroken(Unknown):
    """The provider's answer cannot be understood or must not be followed."""

    code = "provider_protocol"
    title = "The provider's answer cannot be used"


def tree(root: type[Failure] = Failure) -> tuple[type[Failure], ...]:
    """Every class of the tree, root first."""
    return (root, *(cls for child in root.__subclasses__() for cls in tree(child)))


BY_CODE: dict[str, type[Failure]] = {cls.code: cls for cls in reversed(tree())}
