#!/usr/bin/env bash
# Reading recordings with sonde and with MNE-Python, in turn, on this machine: whole files and random windows, all channels, as
# float64; both sides must come to the same sums.
#   benchmarks/speed/read_eeg.sh SONDE PYTHON DIR|FILE... [--rounds 3] [--seconds 2] [--cpu-time] [--json FILE]
# SONDE: the command. PYTHON: an interpreter with mne. DIR: all recordings below it that both sides read.
set -eu
if [ $# -lt 3 ]; then sed -n '2,5s/^# //p' "$0"; exit 2; fi
sonde=$1 python=$2
shift 2
exec "$python" "$(dirname "$0")/read_eeg.py" "$sonde" "$python" "$@"
