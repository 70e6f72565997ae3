#!/usr/bin/env bash
# Training steps of sonde and of the same model in PyTorch, in turn, on this machine.
#   benchmarks/speed/compare.sh SONDE PYTHON [--models vit_t,vit_s,vit_b] [--dtypes f32,bf16] [--rounds 3] [--seconds 3]
# SONDE: the command. PYTHON: an interpreter with torch (torch.compile needs a C++ compiler).
set -eu
if [ $# -lt 2 ]; then sed -n '2,4s/^# //p' "$0"; exit 2; fi
sonde=$1 python=$2
shift 2
# A library that is told to be an older processor's would not be PyTorch at its best.
unset OPENBLAS_CORETYPE
exec "$python" "$(dirname "$0")/compare.py" "$sonde" "$python" "$@"
