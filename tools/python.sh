#!/bin/sh
# Runs its arguments with the first Python 3.10 to 3.13 that works. A command that
# exists may still fail: version managers leave shims for versions that are off.
# Which Python the virtual environment gets is tools/environment.py's choice.
in_range='import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))'
for python in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.10; do
    if "$python" -c "$in_range" >/dev/null 2>&1; then
        exec "$python" "$@"
    fi
done
echo "error: no Python 3.10 to 3.13 found; install one (on Debian: apt-get install" \
    "python3 python3-venv), or name one: make PYTHON=/path/to/python3 ..." >&2
exit 1
