"""Execution of a command inside User Mode Linux, a Linux kernel in an ordinary process.

    this machine                              inside: one processor, no external network
    boot --linux.uml, root = this file system--> inside (process 1): mounts, modules, the command
         <-- stdout, stderr over two consoles --
         --- signals over a third --->
         <-- exit code in a file ---

For machines whose kernel lacks features that a run needs, such as netem. The file system is that of
the machine, so programs, the kernel cache and run folders have the same paths; nothing else of the
machine is accessible. The module does not know what the command does.
"""
