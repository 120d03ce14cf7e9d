"""The API that a program uses: publications to write to, subscriptions to read from, over a media
driver's files.

    from driver.client.aeron import Aeron

    with Aeron(directory) as aeron:
        publication = aeron.add_publication("aeron:udp?endpoint=localhost:20121", 1001)
        publication.offer(b"hello")

A client meets its driver only in shared memory: commands go into a ring, answers come from a
broadcast, messages lie in log buffers that both map. An unmodified driver of Aeron serves it as
well as ours.
"""
