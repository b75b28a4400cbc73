#!/usr/bin/env bash
# Promise: the NEON kernels equal the reference bit for bit, and an ARM machine writes the same file as this one. Would
# notice: a wrong bit in either. Cross-compiled, run under qemu-user.
#   neon_soak.sh SOURCE_FOLDER WORK_FOLDER LIBPERHAPS.A
set -euo pipefail
source=$1 work=$2 native_library=$3
compiler=aarch64-linux-gnu-g++
rm -rf "$work"
mkdir -p "$work/include"
# Headers without machine-specific code. Not -I/usr/include, which has the C library of this machine.
ln -sfn /usr/include/hwy "$work/include/hwy"
ln -sf /usr/include/xxhash.h "$work/include/xxhash.h"

flags=(-std=c++20 -O2 -Wall -Wextra -Werror -DPERHAPS_SIMD=1 -DHWY_SHARED_DEFINE -DNDEBUG -pthread
       -I"$source/include" -I"$source/src" -isystem "$work/include")
compile() {  # compile FILE...: prints the object files
  local file object
  for file in "$@"; do
    object=${file#"$source"/}
    object=$work/${object//\//_}.o
    "$compiler" "${flags[@]}" -c "$file" -o "$object"
    echo "$object"
  done
}
mapfile -t files < <(find "$source/src" -name '*.cc' | sort)
mapfile -t library < <(compile "${files[@]}" "$source/test/soak/neon_highway.cc")
mapfile -t kernels < <(compile "$source/fuzz/kernels_fuzz.cc" "$source/test/soak/neon_main.cc")
"$compiler" -static "${kernels[@]}" "${library[@]}" -o "$work/kernels"
qemu-aarch64 "$work/kernels"

mapfile -t consumer < <(compile "$source"/test/install/consumer/*.cc)
"$compiler" -static "${consumer[@]}" "${library[@]}" -o "$work/consumer"
qemu-aarch64 "$work/consumer" "$work/arm.perhaps"
g++ -std=c++20 -O2 -I"$source/include" "$source"/test/install/consumer/*.cc "$native_library" -lhwy -pthread \
  -o "$work/consumer.native"
"$work/consumer.native" "$work/native.perhaps"
cmp "$work/arm.perhaps" "$work/native.perhaps"
echo 'the ARM binary and the native one wrote the same file'
