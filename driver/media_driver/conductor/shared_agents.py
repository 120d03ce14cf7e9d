"""Runs several agents in one thread, with a compiled kernel that alternates their duty cycles.

Source: spec 10.2, Aeron 1.53 threading modes SHARED and SHARED_NETWORK.
"""

from windtunnel.driver.base import idle, system
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.media_driver.agent import duty_cycle
from windtunnel.driver.media_driver.conductor import conductor_state
from windtunnel.driver.media_driver.receiver import receiver
from windtunnel.driver.media_driver.sender import sender


@kernel
def run_network(sending, receiving, quantum_ns):
    """Alternate the duty cycles of sender and receiver for `quantum_ns`, with the sender's idle
    strategy.
    """
    began_ns = system.monotonic_ns()
    now_ns = began_ns
    while now_ns - began_ns < quantum_ns and sending.agent[0].is_stopping == 0:
        duty_cycle.measure(sending.cycle, sending.counters, now_ns)
        duty_cycle.measure(receiving.cycle, receiving.counters, now_ns)
        work_count = sender.do_work(sending, now_ns) + receiver.do_work(receiving, now_ns)
        idle.after_turn(sending.idle, work_count)
        now_ns = system.monotonic_ns()


@kernel
def run_all(conducting, sending, receiving, deadline_ns):
    """Alternate the duty cycles of all agents until the deadline, or until the conductor's Python
    part must run. Runs at least one duty cycle.
    """
    now_ns = system.monotonic_ns()
    while True:
        duty_cycle.measure(conducting.cycle, conducting.counters, now_ns)
        duty_cycle.measure(sending.cycle, sending.counters, now_ns)
        duty_cycle.measure(receiving.cycle, receiving.counters, now_ns)
        work_count = conductor_state.track(
            conducting, now_ns, system.epoch_ns() // system.NS_PER_MS
        )
        work_count += sender.do_work(sending, now_ns) + receiver.do_work(receiving, now_ns)
        if conductor_state.needs_python(conducting):
            return
        idle.until(conducting.idle, work_count, conducting.agent[0].nak_due_ns - now_ns)
        now_ns = system.monotonic_ns()
        if now_ns >= deadline_ns or conducting.agent[0].is_stopping:
            return
