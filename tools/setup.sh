#!/bin/sh
# Makes .venv and installs requirements.txt into it; called by make. Says in one sentence what is missing.
set -eu
python=${PYTHON:-python3}

stop() {
    echo "$1" >&2
    exit 1
}

"$python" -c '' 2>/dev/null ||
    stop "Python was not found as '$python': install Python 3.11 or newer, or name yours with make PYTHON=/path/to/python."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "$("$python" --version 2>&1) is too old: the book needs Python 3.11 or newer (name one with make PYTHON=/path/to/python)."
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "This Python has no venv module: install it first (on Debian and Ubuntu: apt install python3-venv)."

# A file that git has touched without changing it is no reason to install again.
wanted="$("$python" --version 2>&1) $(cat requirements.txt pyproject.toml | cksum)"
alive() { .venv/bin/python -m pip --version >/dev/null 2>&1; }
if [ "$(cat .venv/ready 2>/dev/null)" = "$wanted" ] && alive; then
    touch .venv/ready
    exit 0
fi
rm -f .venv/ready
alive || "$python" -m venv --clear .venv
echo "Installing requirements.txt into .venv: two to five minutes and 2 GB, more where torch brings CUDA."
log=.venv/install.log
if ! .venv/bin/python -m pip install --retries 2 --requirement requirements.txt >"$log" 2>&1; then
    if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|Failed to establish|ProxyError|Temporary failure' "$log"; then
        stop "No network: pip could not reach its package index, so requirements.txt is not installed (pip's words are in $log)."
    fi
    tail -n 5 "$log" >&2
    stop "pip could not install requirements.txt: its last words are above, all of them in $log."
fi
echo "$wanted" >.venv/ready
