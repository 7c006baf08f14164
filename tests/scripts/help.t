# The frame around the commands: help, version, and what is not a command.

$ tenon --version
re: tenon \d+\.\d+\.\d+

$ tenon --help
tenon ...: fine-tunes and serves open-weight language models

usage: tenon COMMAND [options]

commands:
...
Exit codes: 0 done, 1 failed while running, 2 bad input, 3 does not fit in memory.

$ tenon
...
usage: tenon COMMAND [options]
...
[exit 2]

$ tenon xyzzy
tenon: unknown command 'xyzzy'
  See 'tenon --help'.
[exit 2]

$ tenon --quiet
tenon: unknown option '--quiet'
  Options come after the command: see 'tenon --help'.
[exit 2]

$ tenon help xyzzy
tenon: unknown command 'xyzzy'
  See 'tenon --help'.
[exit 2]

# Output that cannot be written is a failure.
$ tenon --help > /dev/full
tenon: standard output: cannot write the output
  Is the disk full?
[exit 1]
