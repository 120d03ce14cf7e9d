"""Parsers for capture files of any size: pcap and pcapng, link layers, IP, UDP, reassembly."""
