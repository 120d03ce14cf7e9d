"""Timer slack is minimal for agent threads and unchanged for others."""

import threading

from windtunnel.driver.media_driver.agent import timer_slack


def test_only_the_calling_thread_has_minimal_timer_slack():
    before = timer_slack.slack_ns()
    assert before > timer_slack.SLACK_NS
    seen = []

    def agent():
        timer_slack.minimize_timer_slack()
        seen.append(timer_slack.slack_ns())

    thread = threading.Thread(target=agent)
    thread.start()
    thread.join()
    assert seen == [timer_slack.SLACK_NS]
    assert timer_slack.slack_ns() == before
