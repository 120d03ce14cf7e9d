"""Captures to answers: what was lost, who noticed, how long until it was repaired.

    paths -> capture_files -> parts --+--> local_engine ---+--> frames --> streams, gaps --> tables
                                      +--> pcap_source ----+
                                           (Spark)

Both engines read with the same kernels and analyse with the same code, so they give the same rows.
Only the modules whose name says so need Spark.
"""
