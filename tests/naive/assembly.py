"""Reference implementation of reassembly: a message is complete if all its fragments arrived."""


def whole_messages(messages, arrived):
    """Return the messages of which every fragment arrived.

    messages: list of lists of fragments; arrived: the set of (message, fragment) that arrived
    """
    return [
        b"".join(fragments)
        for number, fragments in enumerate(messages)
        if all((number, index) in arrived for index in range(len(fragments)))
    ]
