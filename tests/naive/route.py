"""Reference implementation of the relay's routes: addresses as text, links as pairs of names."""

from ipaddress import ip_address


def route(hosts, links, near, destination):
    """Return the link directions that a packet takes, as codes in order of its receivers.

    hosts: name to address, in the order of the ports; links: pairs of names, in order; near: name
    of the sending host
    """
    codes = {}
    for index, (first, second) in enumerate(links):
        codes[first, second] = 2 * index
        codes[second, first] = 2 * index + 1
    group = ip_address(destination).is_multicast
    found = []
    for name, address in hosts.items():
        meant = group or ip_address(address) == ip_address(destination)
        if name != near and meant and (near, name) in codes:
            found.append(codes[near, name])
    return found
