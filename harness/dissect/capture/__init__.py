"""Parsers of capture files of any size: pcap and pcapng, link layers, IP, UDP, reassembly."""
