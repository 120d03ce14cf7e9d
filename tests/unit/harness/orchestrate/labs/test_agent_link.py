"""The harness's end of the connection to an agent."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from windtunnel.harness.orchestrate.lab import LabError
from windtunnel.harness.orchestrate.labs import host_agent
from windtunnel.harness.orchestrate.labs.agent_link import AgentLink


def test_a_closed_link_sends_no_request_that_waited():
    agent, harness = socket.socketpair()
    link = AgentLink("a", harness)
    with agent, ThreadPoolExecutor(3) as threads:
        first = threads.submit(link.request, "poll", pid=1)
        assert host_agent.receive_message(agent) == {"operation": "poll", "pid": 1}
        second = threads.submit(link.request, "spawn", argv=["date"])
        while link._executor._work_queue.empty():
            pass
        closing = threads.submit(link.close)
        with pytest.raises(LabError, match="spawn in a: the lab is closed"):
            second.result(60)
        host_agent.send_message(agent, {"code": 0})
        assert first.result(60) == {"code": 0}
        closing.result(60)
        assert host_agent.receive_message(agent) is None
    with pytest.raises(LabError, match="poll in a: the lab is closed"):
        link.request("poll", pid=1)


def test_an_agent_that_ends_is_named():
    agent, harness = socket.socketpair()
    agent.close()
    link = AgentLink("a", harness)
    with pytest.raises(LabError, match="the agent in a"):
        link.request("poll", pid=1)
    link.close()
