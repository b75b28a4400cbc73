#!/usr/bin/env bash
# Promise: the library can be a part of another project, which has another standard and flags of its own. Would notice:
# a target, a flag or a warning that is forced on that project.
#   embedding_test.sh WORK_FOLDER THIS_FOLDER COMPILER [LIBRARY]    with one, only what differs from it is compiled
set -euo pipefail
work=$1 here=$2 compiler=$3 library=${4:-}
echo '-- add_subdirectory, in a project with another standard and its own flags'
rm -rf "$work"
mkdir -p "$work"
cmake -S "$here/embedding" -B "$work" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DPERHAPS_BUILT="$library" \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS_DEBUG= >"$work/log" || { cat "$work/log"; exit 1; }
! grep -q -- '-Werror' "$work/build.ninja" || { echo '-Werror is forced on an embedding project'; exit 1; }
cmake --build "$work" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/program" "$work/embedding.perhaps"
[[ ! $(ldd "$work/program") =~ libhwy ]] || { echo 'the program asked for no SIMD kernels, but has them'; exit 1; }
