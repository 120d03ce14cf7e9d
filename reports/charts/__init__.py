"""The data of a run's charts, and its format on a page.

counter_lines   lines of positions over time, from the counters of the drivers
marks           single events: lost frames, NAKs, retransmits, gap fills
series          all lines and marks of a run
series_reader   reads these from the run folder
decimation      fewer points that keep a line's shape
chart_document  the document that the page's script draws
packing         the document as compressed text, and the scripts that unpack and draw it
"""
