"""Draw what a run left behind.

    run folder -> counter_lines, marks -> series -> charts ---+
                  verdict.json, run.json, ledger -> tables ---+--> page -> report.html

A report is made from run folders alone: it starts nothing, judges nothing and changes nothing. What
is missing or damaged is said on the page; it never stops the page.
"""
