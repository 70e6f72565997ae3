#!/usr/bin/env bash
# Installs what the build and the tests need on Debian 12, with apt-get, and only what is missing: when everything is
# there it does nothing and needs no network. Uses sudo when not root; without it prints the one line to run and fails.
set -eu

# g++: CMake asks for a C++ compiler too. libc6-dev and libgomp come with it.
packages=(gcc g++ cmake ninja-build libcmocka-dev libdnnl-dev libyaml-dev libhdf5-dev libfftw3-dev libflac-dev
          zlib1g-dev pkg-config)

if ! command -v dpkg-query > /dev/null; then
  echo "packages: this is not Debian; the counterparts of these must be there: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  # A virtual package (pkg-config on newer releases) counts when something that is installed provides it.
  state=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2> /dev/null || true)
  if [[ $state != *installed* || $state == *not-installed* ]] &&
     ! dpkg-query -W -f '${db:Status-Status} ${Provides}\n' | grep -Eq "^installed .*(^|[ ,])$package([ ,]|\$)"; then
    missing+=("$package")
  fi
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "packages: all there"
  exit 0
fi

echo "packages: missing: ${missing[*]}"
by_hand="apt-get update && apt-get install -y ${missing[*]}"
if [[ $(id -u) -eq 0 ]]; then
  as_root=()
elif command -v sudo > /dev/null; then
  as_root=(sudo)
else
  echo "packages: this needs root and there is no sudo. As root, run:" >&2
  echo "  $by_hand" >&2
  exit 1
fi
if ! { "${as_root[@]}" apt-get update &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; }; then
  echo "packages: the installation failed. As root, run:" >&2
  echo "  $by_hand" >&2
  exit 1
fi
