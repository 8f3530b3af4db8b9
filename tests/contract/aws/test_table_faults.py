"""What moto cannot show of DynamoDB: conflicts, throttles, answers that never came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse  # type: ignore[import-untyped]
from botocore.exceptions import (  # type: ignore[import-untyped]
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from adapters.aws.session import Session
from adapters.aws.table import DynamoTable
from sandbox_router.model.failure import Internal
from sandbox_router.table import (
    ConditionFailed,
    Contended,
    Lost,
    Put,
    Range,
    Test,
    Update,
    missing,
    when,
)
from tests.contract.aws.cloud import REGION, TABLE, make_table
from tests.contract.aws.faults import Faults, answer

KEY, OTHER = ("pk", "a"), ("pk", "b")
URL = f"https://dynamodb.{REGION}.amazonaws.com/"
LOST = [
    ReadTimeoutError(endpoint_url=URL),
    ConnectionClosedError(endpoint_url=URL),
    answer(500, "InternalServerError"),
    answer(503, "ServiceUnavailable"),
    answer(502, "NoSuchCode"),
]
UNSENT = [EndpointConnectionError(endpoint_url=URL), ConnectTimeoutError(endpoint_url=URL)]
THROTTLED = [
    answer(400, "ProvisionedThroughputExceededException"),
    answer(400, "ThrottlingException"),
    answer(400, "RequestLimitExceeded"),
    answer(400, "TransactionConflictException"),
]


def cancelled(*codes: str | None, **more: Any) -> AWSResponse:
    reasons = [{"Code": code or "None", **more.get(f"at{n}", {})} for n, code in enumerate(codes)]
    return answer(400, "TransactionCanceledException", CancellationReasons=reasons)


@pytest.fixture
def faults(account: Session) -> Iterator[Faults]:
    client = account.made("dynamodb")
    make_table(client)
    with Faults(client) as faults:
        yield faults
    client.delete_table(TableName=TABLE)


@pytest.fixture
def table(faults: Faults) -> DynamoTable:
    return DynamoTable(faults.client, TABLE)


@pytest.mark.parametrize("fault", LOST, ids=repr)
def test_a_write_without_an_answer_is_lost_and_not_sent_again(
    table: DynamoTable, faults: Faults, fault: Any
) -> None:
    faults.before(fault)
    with pytest.raises(Lost):
        table.write(Update(KEY, add={"n": 1}))
    assert faults.sent == ["UpdateItem"]


@pytest.mark.parametrize("fault", [*UNSENT, *THROTTLED], ids=repr)
@pytest.mark.parametrize("writes", [1, 2])
def test_what_was_never_sent_or_is_in_the_way_is_contended(
    table: DynamoTable, faults: Faults, fault: Any, writes: int
) -> None:
    faults.before(fault)
    with pytest.raises(Contended):
        table.write(*[Put(KEY, {}), Put(OTHER, {})][:writes])
    assert len(faults.sent) == 1
    assert table.get(KEY) is None


@pytest.mark.parametrize("fault", [*LOST, *UNSENT, *THROTTLED], ids=repr)
def test_a_read_that_fails_can_be_tried_again(
    table: DynamoTable, faults: Faults, fault: Any
) -> None:
    faults.before(fault, fault)
    with pytest.raises(Contended):
        table.get(KEY)
    with pytest.raises(Contended):
        table.query("due", "x", Range(high=1))


def test_a_written_item_whose_answer_was_lost_is_lost_and_stays(
    table: DynamoTable, faults: Faults
) -> None:
    faults.after(ConnectionClosedError(endpoint_url=URL))
    with pytest.raises(Lost):
        table.write(Put(KEY, {"nonce": "mine"}, missing()))
    with pytest.raises(ConditionFailed) as caught:  # the store's rule: its own nonce is success
        table.write(Put(KEY, {"nonce": "mine"}, missing()))
    assert (caught.value.old[0] or {})["nonce"] == "mine"


def test_a_transaction_is_sent_again_under_its_token_after_a_lost_answer(
    table: DynamoTable, faults: Faults
) -> None:
    # moto forgets tokens (it would apply both), so the second answer is DynamoDB's, by hand.
    faults.after(ReadTimeoutError(endpoint_url=URL))
    faults.before(None, answer(200))
    table.write(Update(KEY, add={"n": 1}), Put(OTHER, {}))
    assert faults.sent == ["TransactWriteItems"] * 2
    first, second = faults.bodies
    assert first == second
    assert 1 <= len(first["ClientRequestToken"]) <= 36
    item = table.get(KEY)
    assert item is not None
    assert item["n"] == 1


def test_no_two_transactions_have_one_token(table: DynamoTable, faults: Faults) -> None:
    for _ in range(2):
        table.write(Put(KEY, {}), Put(OTHER, {}))
    assert len({body["ClientRequestToken"] for body in faults.bodies}) == 2


def test_a_transaction_lost_twice_is_lost(table: DynamoTable, faults: Faults) -> None:
    faults.before(LOST[0], LOST[2])
    with pytest.raises(Lost):
        table.write(Put(KEY, {}), Put(OTHER, {}))
    assert len(faults.sent) == 2


@pytest.mark.parametrize(
    "second",
    [
        answer(400, "TransactionInProgressException"),
        *THROTTLED,
        cancelled(None, "TransactionConflict"),
    ],
    ids=repr,
)
def test_nothing_heard_of_the_second_try_settles_the_first(
    table: DynamoTable, faults: Faults, second: Any
) -> None:
    faults.before(LOST[0], second)
    with pytest.raises(Lost):
        table.write(Put(KEY, {}), Put(OTHER, {}))


def test_a_failed_condition_of_the_second_try_tells_of_both(
    table: DynamoTable, faults: Faults
) -> None:
    """Had the first been applied, its token would have answered with success."""
    table.write(Put(KEY, {"n": 1}))
    faults.before(LOST[0])
    with pytest.raises(ConditionFailed) as caught:
        table.write(Put(KEY, {}, missing()), Put(OTHER, {}))
    assert caught.value.old == ({"pk": "pk", "sk": "a", "n": 1}, None)


@pytest.mark.parametrize(
    "codes",
    [
        ("TransactionConflict", None),
        ("ThrottlingError", None),
        ("ProvisionedThroughputExceeded", None),
        ("ConditionalCheckFailed", "TransactionConflict"),
        (),
    ],
)
def test_whatever_was_in_the_way_is_never_a_failed_condition(
    table: DynamoTable, faults: Faults, codes: tuple[str | None, ...]
) -> None:
    faults.before(cancelled(*codes))
    with pytest.raises(Contended):
        table.write(Put(KEY, {}, missing()), Put(OTHER, {}))


def test_the_old_items_of_a_cancelled_transaction_are_by_write(
    table: DynamoTable, faults: Faults
) -> None:
    item = {"pk": {"S": "pk"}, "sk": {"S": "b"}, "raw": {"B": "AP8="}}
    faults.before(cancelled(None, "ConditionalCheckFailed", at1={"Item": item}))
    with pytest.raises(ConditionFailed) as caught:
        table.write(Put(KEY, {}), Put(OTHER, {}, missing()))
    assert caught.value.old == (None, {"pk": "pk", "sk": "b", "raw": b"\x00\xff"})


def test_an_item_too_large_for_a_transaction_is_refused(table: DynamoTable, faults: Faults) -> None:
    faults.before(cancelled(None, "ValidationError"))
    with pytest.raises(ValueError, match="refuses"):
        table.write(Put(KEY, {}), Update(OTHER, set={"v": 1}))


@pytest.mark.parametrize(
    "fault",
    [
        answer(400, "ResourceNotFoundException"),
        answer(400, "AccessDeniedException"),
        answer(400, "ExpiredTokenException"),
        answer(400, "IdempotentParameterMismatchException"),
        NoCredentialsError(),
    ],
    ids=repr,
)
def test_a_table_closed_to_us_is_a_fault_of_ours_and_logged_without_values(
    table: DynamoTable, faults: Faults, fault: Any, caplog: pytest.LogCaptureFixture
) -> None:
    faults.before(fault, fault)
    with pytest.raises(Internal):
        table.write(Put(KEY, {"v": "CANARY"}), Put(OTHER, {}))
    with pytest.raises(Internal):
        table.get(KEY)
    assert len(caplog.records) == 2
    assert "CANARY" not in caplog.text


def test_a_page_cut_by_its_size_goes_on_where_it_ended(table: DynamoTable, faults: Faults) -> None:
    """1 MB a page: no emulator of ours cuts one, the answer is DynamoDB's by hand."""
    for n in range(3):
        table.write(Put(("pk", str(n)), {"due_shard": "s", "due_at": n}))
    item = {"pk": {"S": "pk"}, "sk": {"S": "0"}, "due_shard": {"S": "s"}, "due_at": {"N": "0"}}
    faults.before(answer(200, Items=[item], LastEvaluatedKey=item))
    page = table.query("due", "s")
    assert [i["sk"] for i in page.items] == ["0"]
    rest = table.query("due", "s", cursor=page.cursor)
    assert [i["sk"] for i in rest.items] == ["1", "2"]
    faults.before(answer(200, Items=[], LastEvaluatedKey=item))
    assert table.query("due", "s").cursor == page.cursor


def test_an_index_is_never_asked_for_consistency_and_the_base_always(
    table: DynamoTable, faults: Faults
) -> None:
    table.query("tenant", "t")
    table.query(None, "t")
    table.get(KEY)
    table.get(KEY, consistent=False)
    assert [body.get("ConsistentRead") for body in faults.bodies] == [None, True, True, False]


def test_a_number_spelled_by_others_is_read_and_a_fraction_is_not(
    table: DynamoTable, faults: Faults
) -> None:
    faults.before(answer(200, Item={"n": {"N": "1E+2"}}))
    assert table.get(KEY) == {"n": 100}
    for foreign in ({"N": "1.5"}, {"SS": ["a"]}):
        faults.before(answer(200, Item={"n": foreign}))
        with pytest.raises(Internal):
            table.get(KEY)


def test_what_is_not_of_aws_is_not_translated(table: DynamoTable, faults: Faults) -> None:
    faults.before(KeyError("a fault in this program"))
    with pytest.raises(KeyError):
        table.write(Update(KEY, set={"n": 1}, when=when(Test("n", "missing"))))
