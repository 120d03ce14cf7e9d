"""Messages between clients and the driver, as immutable values.

    command_type    type codes of commands and responses, error codes
    payload         the base class of messages: their bytes
    client publication subscription destination image counter driver response    the messages
    codec           type code and bytes -> message, in either direction

Every message can be encoded and decoded. Decoding checks every length against the end of the
message and raises MalformedCommand. Extra bytes at the end are ignored. `windtunnel.driver.cnc`
transports the messages.
"""
