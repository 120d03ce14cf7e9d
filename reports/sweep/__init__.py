"""The sweep of a scenario on its report page: figures over the values that were swept.

    goodput                       repair time, 99 %                table of the runs
    |  *                          |          *
    |   *__*  delay 1 ms          |  *__*__*                        loss  delay  goodput
    +---------- loss              +---------- loss                  1%    1ms    9.1 MB/s

The first swept value is on the horizontal axis, in the order of the file. Each combination of the
others is a line. A point is the median of the runs with its values; runs without the figure are
left out.
"""
