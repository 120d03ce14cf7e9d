"""Reassembly, written for obviousness: a message is whole if all of its fragments came."""


def whole_messages(messages, arrived):
    """The messages of which every fragment arrived.

    messages: list of lists of fragments; arrived: the set of (message, fragment) that came
    """
    return [
        b"".join(fragments)
        for number, fragments in enumerate(messages)
        if all((number, index) in arrived for index in range(len(fragments)))
    ]
