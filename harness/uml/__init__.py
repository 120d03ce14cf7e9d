"""The same command inside another kernel: User Mode Linux, a Linux that is an ordinary process.

    this machine                              inside, one processor, no network of its own
    boot --linux.uml, root = this file system--> inside (process 1): mounts, modules, the command
         <-- stdout, stderr over two consoles --
         --- signals over a third --->
         <-- exit code in a file ---

For machines whose own kernel lacks what a run needs, netem first of all. The file system is this
machine's, so programs, kernels' cache and run folders are where they always are; the rest of the
machine is out of reach. Refuses to know what the command does.
"""
