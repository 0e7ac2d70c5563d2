#!/bin/sh
# Double-click this after you download GPU Studio: it sets GPU Studio up and opens it.
# Without a terminal, a small window shows the progress; without tkinter, a terminal opens.

here=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd) || exit 1

say() {
    printf '%s\n' "$1" >&2
    [ -t 2 ] && return
    if command -v zenity >/dev/null 2>&1; then
        zenity --error --title='GPU Studio' --text="$1"
    elif command -v kdialog >/dev/null 2>&1; then
        kdialog --title 'GPU Studio' --error "$1"
    elif command -v xmessage >/dev/null 2>&1; then
        xmessage -center "$1"
    elif command -v notify-send >/dev/null 2>&1; then
        notify-send 'GPU Studio' "$1"
    fi
}

fits() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null
}

python=
for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    if fits "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    say 'GPU Studio needs Python 3.10 to 3.14: install the package python3, then start GPU Studio again.'
    exit 1
fi

if [ -n "${GPU_STUDIO_IN_TERMINAL:-}" ]; then
    unset GPU_STUDIO_IN_TERMINAL
    "$python" "$here/bootstrap.py" run "$@" && exit 0
    printf 'Press Enter to close this window. '
    read -r _
    exit 1
fi
if [ -t 2 ]; then
    exec "$python" "$here/bootstrap.py" run "$@"
fi
if "$python" -c 'import tkinter' 2>/dev/null; then
    exec "$python" "$here/bootstrap.py" --progress window run "$@"
fi
export GPU_STUDIO_IN_TERMINAL=1
for terminal in x-terminal-emulator konsole xfce4-terminal mate-terminal lxterminal alacritty xterm; do
    command -v "$terminal" >/dev/null 2>&1 && exec "$terminal" -e "$here/gpu-studio.sh"
done
for terminal in gnome-terminal kgx ptyxis; do
    command -v "$terminal" >/dev/null 2>&1 && exec "$terminal" -- "$here/gpu-studio.sh"
done
unset GPU_STUDIO_IN_TERMINAL
"$python" "$here/bootstrap.py" run "$@" ||
    say "GPU Studio could not be set up. The log says why: $(dirname -- "$here")/.setup/log.txt."
