#!/usr/bin/env bash
# The layer check: a folder includes only what stands below it.
#   core -- kernels -- encoders -- objectives --+
#     +---- modalities -- datasets -------------+-- engine -- benchmarks -- cli
# Prints every include that breaks the rule and fails if there is one, or if nothing was checked.
set -eu
cd "$(dirname "$0")/.."
awk '
  BEGIN {
    split("core kernels encoders objectives modalities datasets engine benchmarks cli", layers, " ")
    allowed["core"] = " core "
    allowed["kernels"] = " core kernels "
    allowed["encoders"] = " core kernels encoders "
    allowed["objectives"] = " core kernels encoders objectives "
    allowed["modalities"] = " core modalities "
    allowed["datasets"] = " core modalities datasets "
    allowed["engine"] = " core kernels encoders objectives modalities datasets engine "
    allowed["benchmarks"] = allowed["engine"] "benchmarks "
    allowed["cli"] = allowed["benchmarks"] "cli "
    for (i in layers) known[layers[i]] = 1
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    file = FILENAME; sub(/^\.\//, "", file)
    from = file; sub(/\/.*/, "", from)
    path = $0; sub(/^[^"]*"/, "", path); sub(/".*/, "", path)
    to = path; sub(/\/.*/, "", to)
    checked++
    if (!(to in known)) { print file ":" FNR ": \"" path "\" is not written from the project root"; bad++ }
    else if (index(allowed[from], " " to " ") == 0) { print file ":" FNR ": " from " must not include " path; bad++ }
  }
  END {
    if (checked == 0) { print "layer check: no include was checked"; exit 1 }
    if (bad) { print "layer check: " bad " of " checked " includes break the rule"; exit 1 }
    print "layer check: " checked " includes, all allowed"
  }
' $(find core kernels encoders objectives modalities datasets engine benchmarks cli -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' | sort)
# File names are unique in the tree.
twice=$(find core kernels encoders objectives modalities datasets engine benchmarks cli tests tools -type f -name '*.[ch]*' -printf '%f\n' | sort | uniq -d)
if [ -n "$twice" ]; then echo "file names that occur twice: $twice"; exit 1; fi
