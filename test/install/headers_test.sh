#!/usr/bin/env bash
# Promise: every public header compiles alone, in a strict project, with both compilers, with and without AVX2. Would
# notice: a header that leans on what another happened to include, or a warning forced on whoever includes it.
#   headers_test.sh INCLUDE_FOLDER COMPILER...
set -euo pipefail
include=$1
shift
strict=(-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Werror)

check() {  # check COMPILER HEADER [FLAG]
  echo "#include \"$2\"" | "$1" "${strict[@]}" ${3:-} -I"$include" -x c++ - || { echo "FAILED: $*"; return 255; }
}

mapfile -t headers < <(cd "$include" && find perhaps -name '*.h' | sort)
((${#headers[@]} >= 10)) || { echo "only ${#headers[@]} headers under $include"; exit 1; }
running=0
start() {
  if ((running == 2)); then
    wait -n
    running=1
  fi
  check "$@" &
  running=$((running + 1))
}
for compiler in "$@"; do
  for header in "${headers[@]}"; do start "$compiler" "$header"; done
  # The only header that looks at compiler flags, through one that uses all of it.
  [[ $(uname -m) != x86_64 ]] || start "$compiler" perhaps/container.h -mavx2
done
for ((; running > 0; --running)); do wait -n; done
echo "${#headers[@]} headers, $# compilers: each compiles alone"
