"""Runs a command in User Mode Linux, a Linux kernel that runs as an ordinary process.

    this machine                              inside: one processor, no external network
    boot --linux.uml, root = this file system--> inside (process 1): mounts, modules, the command
         <-- stdout, stderr over two consoles --
         --- signals over a third --->
         <-- exit code in a file ---

This is for machines whose kernel lacks features that a run needs, such as netem. The command uses
the machine's file system, so programs, the kernel cache and run folders have the same paths.
Nothing else of the machine is accessible.
"""
