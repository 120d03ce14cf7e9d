"""What clients and driver say to each other: one module a family, each message a frozen value.

    command_type    the codes of commands, responses and errors
    payload         reading and writing fields inside a message
    client publication subscription destination image counter driver response    the messages
    codec           code + bytes -> message, in either direction

Both sides use both directions. A message decodes or raises MalformedCommand: every length inside
it is checked against its end, bytes behind it are tolerated. Knows nothing of how messages travel
(that is `windtunnel.driver.cnc`) nor of what is done about them.
"""
