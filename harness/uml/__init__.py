"""Runs a command in User Mode Linux, a Linux kernel that runs as an ordinary process.

    this machine                              inside: one processor, no external network
    boot --linux.uml, root = this file system--> inside (process 1): mounts, modules, the command
         <-- stdout, stderr over two consoles --
         --- signals over a third --->
         <-- exit code in a file ---

It is used on machines whose kernel lacks a feature that a run needs, such as netem. The command
uses the machine's file system, so programs, the kernel cache and run folders have the same paths.
Inside, nothing else on the machine is accessible.
"""
