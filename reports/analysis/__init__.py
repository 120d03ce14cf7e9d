"""Analysis of captures: loss, NAKs, repair times, flow control, and the outcome of each frame.

    paths -> capture_files -> parts --+--> local_engine ---+--> frames --> streams, gaps --> tables
                                      +--> pcap_source ----+
                                           (Spark)

Both engines use the same compiled kernels and the same analysis code, and return the same rows.
Layers, from top to bottom: `analyze`, `engines`, `sources`, `options`, then `links`, `streams` and
`reading`. Spark is required only by `engines.spark` and the `*_source` modules.
"""
