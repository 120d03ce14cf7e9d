"""Resolution frame: any number of host names with their addresses.

    0       8                       (each entry 8-aligned)
    +-------+-----------------------+-----------------------+----
    | header| entry                 | entry                 | ...
    +-------+-----------------------+-----------------------+----

    0     1     2       4       8                 8+a     10+a
    +-----+-----+-------+-------+-----------------+-------+-------
    |type |flags| port  |age ms | address (a = 4  |name   | name
    |     |     |       |       | or 16 bytes)    |length |
    +-----+-----+-------+-------+-----------------+-------+-------

The address is in network byte order, the port is little-endian.
Source: driver-protocol 1.9.
"""

from windtunnel.driver.base.arith import align
from windtunnel.driver.base.atomics import (
    copy,
    get_i32,
    get_u8,
    get_u16,
    put_i32,
    put_u8,
    put_u16,
    zero,
)
from windtunnel.driver.kernels.jit import kernel
from windtunnel.driver.wire import frame_type as types
from windtunnel.driver.wire import header

FIRST_ENTRY = header.LENGTH
NAME_TO_IP4 = 1
NAME_TO_IP6 = 2
NAME_LENGTH_MAX = 512

RES_TYPE = 0
RES_FLAGS = 1
UDP_PORT = 2
AGE_MS = 4
ADDRESS = 8
ENTRY_ALIGNMENT = 8
INVALID = -1


@kernel
def address_length(buf, at):
    """Return the address length of the entry at offset `at`, or INVALID if its type is unknown."""
    kind = get_u8(buf, at + RES_TYPE)
    if kind == NAME_TO_IP4:
        return 4
    return 16 if kind == NAME_TO_IP6 else INVALID


@kernel
def name_length(buf, at):
    return get_u16(buf, at + ADDRESS + address_length(buf, at))


@kernel
def name_at(buf, at):
    return at + ADDRESS + address_length(buf, at) + 2


@kernel
def check_entry(buf, at, length):
    """Check that an entry is within the `length` bytes from offset `at` to the end of the frame.

    Returns: the aligned length of the entry, at least 8, or INVALID; the last entry may lack its
             padding
    """
    if length < ADDRESS:
        return INVALID
    address = address_length(buf, at)
    if address < 0 or length < ADDRESS + address + 2:
        return INVALID
    name = get_u16(buf, at + ADDRESS + address)
    if name > NAME_LENGTH_MAX or length < ADDRESS + address + 2 + name:
        return INVALID
    return align(ADDRESS + address + 2 + name, ENTRY_ALIGNMENT)


@kernel
def is_self(buf, at):
    return get_u8(buf, at + RES_FLAGS) & types.SELF != 0


@kernel
def udp_port(buf, at):
    return get_u16(buf, at + UDP_PORT)


@kernel
def age_ms(buf, at):
    return get_i32(buf, at + AGE_MS)


@kernel
def write_entry(buf, at, flags, udp_port, age_ms, address, address_length, name, name_length):
    """Write one padded entry with a 4- or 16-byte `address`. Returns the entry's aligned length."""
    length = align(ADDRESS + address_length + 2 + name_length, ENTRY_ALIGNMENT)
    zero(buf, at, length)
    put_u8(buf, at + RES_TYPE, NAME_TO_IP4 if address_length == 4 else NAME_TO_IP6)
    put_u8(buf, at + RES_FLAGS, flags)
    put_u16(buf, at + UDP_PORT, udp_port)
    put_i32(buf, at + AGE_MS, age_ms)
    copy(buf, at + ADDRESS, address, 0, address_length)
    put_u16(buf, at + ADDRESS + address_length, name_length)
    copy(buf, at + ADDRESS + address_length + 2, name, 0, name_length)
    return length


@kernel
def write_header(buf, at, frame_length):
    """Write the header of a resolution frame after its entries have been written. Returns the frame
    length.
    """
    header.write(buf, at, frame_length, 0, types.RES)
    return frame_length
