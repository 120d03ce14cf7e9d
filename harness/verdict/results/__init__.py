"""The results of a run: figures and sentences of what its streams and applications saw.

    result_rows    a row of figures for each subscriber of each stream
    observed_rows  a row of figures for each session of an observed stream
    observations   what the applications saw: sentences, stalls and filled ranges
    sentences/     the sentences about each subject

The judge writes them to verdict.json beside the findings. Of its checks, only `within_envelope` is
about them.
"""
