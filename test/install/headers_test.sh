#!/usr/bin/env bash
# Promise: every public header compiles alone, and all of them together in a strict project, with both compilers, with
# and without AVX2; without C++20 there is one message, which says so. Would notice: a header that leans on what
# another happened to include, a warning forced on whoever includes it, or a page of errors about the standard library.
#   headers_test.sh INCLUDE_FOLDER SOURCE_FOLDER COMPILER...
set -euo pipefail
include=$1 sources=$2
shift 2
strict=(-std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wold-style-cast -Werror)

check() {  # check COMPILER FLAG HEADER...
  local compiler=$1 flag=$2
  shift 2
  printf '#include "%s"\n' "$@" | "$compiler" "${strict[@]}" $flag -I"$include" -x c++ - ||
    { echo "FAILED: $*"; exit 1; }
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
# What is missing in a header is missing for every compiler; what is wrong in it may be seen by one. A header that a
# file of the library includes first has stood alone already: gcc compiles the library without precompiled headers.
declare -A stands=()
while read -r header; do stands[$header]=1; done < <(
  find "$sources" -name '*.cc' -exec grep -hm1 '^#include' {} + | sed -n 's/^#include "\(.*\)"$/\1/p')
alone=0
for header in "${headers[@]}"; do
  [[ ! ${stands[$header]:-} ]] || continue
  start "$1" '' "$header"
  alone=$((alone + 1))
done
for compiler in "$@"; do
  start "$compiler" '' "${headers[@]}"
  [[ $(uname -m) != x86_64 ]] || start "$compiler" -mavx2 "${headers[@]}"
done
for ((; running > 0; --running)); do wait -n; done

# The C API is C99, and C++ before C++20.
for compiler in "$@"; do
  c_compiler=${compiler/clang++/clang}
  c_compiler=${c_compiler/g++/gcc}
  for flags in '-x c -std=c99' '-x c -std=c11 -Wstrict-prototypes' '-x c++ -std=c++11'; do
    # shellcheck disable=SC2086  # several flags
    printf '#include <perhaps.h>\n' |
      "$c_compiler" $flags -fsyntax-only -pedantic -Wall -Wextra -Werror -I"$include" - ||
      { echo "FAILED: perhaps.h with $c_compiler $flags"; exit 1; }
  done
done

# Of the errors, the first is the message and the second ends the compilation. A header whose first error is another
# one does not include detail/config.h, directly or through others, before its own code.
needs_cxx20() {  # needs_cxx20 COMPILER FLAG HEADER
  local told errors
  told=$(printf '#include "%s"\n' "$3" | "$1" -std=c++17 "$2" -I"$include" -x c++ - 2>&1 >/dev/null || true)
  mapfile -t errors < <(grep 'error: ' <<<"$told")
  if [[ ${errors[0]:-} != *'perhaps needs C++20: compile with -std=c++20'* ]] || ((${#errors[@]} != 2)); then
    echo "FAILED: $3 as C++17 with $1 says:"
    echo "$told"
    exit 1
  fi
}
for header in "${headers[@]}"; do needs_cxx20 "$1" -E "$header"; done
for compiler in "$@"; do
  for header in perhaps/result.h perhaps/line_bloom.h perhaps/perhaps.h; do
    needs_cxx20 "$compiler" -fsyntax-only "$header"
  done
done
echo "$alone of ${#headers[@]} headers compile alone, and all together with $# compilers"
