"""Rejection of an image: responses to the client and to its publisher."""

import pytest

from tests.naive import wire
from tests.unit.driver.media_driver.invoked_driver import (
    CHANNEL,
    SECOND,
    STREAM,
    lab_with_long_timeouts,
)
from tests.unit.driver.media_driver.receiving_rig import data, setup
from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.cnc.error_log import read_errors
from windtunnel.driver.command.command_type import ErrorCode
from windtunnel.driver.command.image import AvailableImage, RejectImage, UnavailableImage
from windtunnel.driver.command.publication import AddPublication
from windtunnel.driver.command.response import ErrorResponse, OperationSuccess
from windtunnel.driver.command.subscription import AddSubscription
from windtunnel.driver.media_driver.agent import system_counters

HERE = SocketAddress("10.0.0.1", 20_121)


@pytest.fixture
def driver(tmp_path):
    with lab_with_long_timeouts(tmp_path / "aeron") as opened:
        opened.request(AddSubscription(opened.client, opened.next_id(), STREAM, CHANNEL))
        yield opened


@pytest.fixture
def image(driver):
    driver.send(HERE, setup())
    driver.turn(4)
    (response,) = driver.take()
    assert isinstance(response, AvailableImage)
    driver.outside.clear()
    return response.correlation_id


def reject(driver, image_id, reason="not wanted"):
    return driver.request(RejectImage(driver.client, 900, image_id, 0, reason))


def refusals(driver):
    found = [item for _, item in driver.outside if item[6] == wire.ERR]
    driver.outside.clear()
    return found


def test_the_client_gets_one_response_and_the_publisher_repeated_error_frames(driver, image):
    assert reject(driver, image) == [OperationSuccess(900)]
    assert driver.value(system_counters.IMAGES_REJECTED) == 1
    driver.run_for(1 * SECOND)
    responses = refusals(driver)
    assert 3 <= len(responses) <= 5
    assert {item[36:] for item in responses} == {(10).to_bytes(4, "little") + b"not wanted"}
    assert driver.value(system_counters.ERROR_FRAMES_SENT) == len(responses)


def test_a_rejected_image_times_out(driver, image):
    reject(driver, image)
    for _ in range(14):
        driver.send(HERE, data(0, 100))
        driver.run_for(1 * SECOND)
    assert [item for item in driver.take() if isinstance(item, UnavailableImage)] != []
    refusals(driver)
    driver.run_for(2 * SECOND)
    assert refusals(driver) == []


def test_each_rejection_is_counted_and_the_last_reason_is_sent(driver, image):
    for count, reason in enumerate(("first", "second, longer", "", "last"), 1):
        assert reject(driver, image, reason) == [OperationSuccess(900)]
        assert driver.value(system_counters.IMAGES_REJECTED) == count
        driver.run_for(1 * SECOND)
        assert {item[40:] for item in refusals(driver)} == {reason.encode()}


def test_a_reason_does_not_replace_one_that_the_receiver_has_not_yet_taken(driver, image):
    for reason in ("first", "second"):
        command = RejectImage(driver.client, 900, image, 0, reason)
        driver.post(command.TYPE_ID, command.encode())
        driver.driver.conductor.do_work(driver.clock.now_ns())
    driver.run_for(1 * SECOND)
    assert driver.value(system_counters.IMAGES_REJECTED) == 2
    assert {item[40:] for item in refusals(driver)} == {b"first"}
    reject(driver, image, "third")
    driver.run_for(1 * SECOND)
    assert {item[40:] for item in refusals(driver)} == {b"third"}


def test_the_entry_in_the_error_log_is_that_of_the_c_driver(driver):
    publication = driver.next_id()
    driver.request(AddPublication(driver.client, publication, STREAM, "aeron:ipc?term-length=64k"))
    responses = driver.request(
        AddSubscription(driver.client, driver.next_id(), STREAM, "aeron:ipc")
    )
    (image,) = (item for item in responses if isinstance(item, AvailableImage))
    driver.request(RejectImage(driver.client, 900, image.correlation_id, 0, "not wanted"))
    (entry,) = read_errors(driver.cnc.error_log)
    assert entry.text == (
        f"onPublicationError: registrationId={publication}, destinationRegistrationId=-1, "
        f"sessionId={image.session_id}, streamId={STREAM}, receiverId=-1, groupId=-1, "
        "errorCode=13, errorMessage=not wanted"
    )


def test_an_unknown_image_cannot_be_rejected(driver, image):
    (error,) = reject(driver, image + 1)
    assert isinstance(error, ErrorResponse)
    assert error.error_code == ErrorCode.GENERIC_ERROR
    assert str(image + 1) in error.message
    assert driver.value(system_counters.IMAGES_REJECTED) == 0


@pytest.mark.parametrize(("length", "is_taken"), [(1_023, True), (1_024, False)])
def test_a_reason_has_at_most_1023_bytes(driver, image, length, is_taken):
    (response,) = reject(driver, image, "x" * length)
    assert isinstance(response, OperationSuccess) == is_taken
    driver.run_for(1 * SECOND)
    assert {len(item) for item in refusals(driver)} == ({1_063} if is_taken else set())
