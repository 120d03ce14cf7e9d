"""Messages between clients and driver: each one is an immutable value, with one module per family.

    command_type    type codes of commands and responses, error codes
    payload         reading and writing fields of a message
    client publication subscription destination image counter driver response    the messages
    codec           type code and bytes -> message, in either direction

Every message can be encoded and decoded. Decoding checks every length against the end of the
message and raises MalformedCommand; extra bytes at the end are ignored. The transport of messages
is in `windtunnel.driver.cnc`.
"""
