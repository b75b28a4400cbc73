#!/usr/bin/env bash
# Promise: what `make install` puts on a machine can be used by find_package, by pkg-config and as a subproject, shared
# and static, and code compiled with -mavx2 and without it agrees. Would notice: a header or a dependency that was not
# installed, a path into the build folder, flags forced on the user.
#   package_test.sh BUILD_FOLDER THIS_FOLDER COMPILER
set -euo pipefail
build=$1 here=$2 compiler=$3
work=$build/test/package
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"

cmake --install "$build" --prefix "$prefix" >/dev/null
# The headers of the tree are out of reach from here on; so is the library, which is found by name.
! grep -rIl "$(dirname "$here")" "$prefix" || { echo 'an installed file names the source tree'; exit 1; }
for file in include/perhaps/line_bloom.h include/perhaps/detail/isa.h bin/perhaps share/man/man1/perhaps.1; do
  [[ -s $prefix/$file ]] || { echo "not installed: $file"; exit 1; }
done

echo '-- find_package'
cmake -S "$here/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" >"$work/consumer.log" || { cat "$work/consumer.log"; exit 1; }
cmake --build "$work/consumer" >"$work/consumer.log" || { cat "$work/consumer.log"; exit 1; }
for program in with_default with_shared with_static; do "$work/consumer/$program" "$work/$program.perhaps"; done
[[ $(ldd "$work/consumer/with_default") == *"$prefix/"*libperhaps.so* ]] || { echo 'the default is static'; exit 1; }
! ldd "$work/consumer/with_static" | grep libperhaps || exit 1

echo '-- pkg-config'
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name perhaps.pc)")
export PKG_CONFIG_PATH
read -ra cflags < <(pkg-config --cflags perhaps)
read -ra shared < <(pkg-config --libs perhaps)
read -ra static < <(pkg-config --static --libs perhaps)
for source in main plain wide; do
  "$compiler" -std=c++20 -O0 "${cflags[@]}" -c "$here/consumer/$source.cc" -o "$work/$source.o"
done
objects=("$work"/{main,plain,wide}.o)
"$compiler" "${objects[@]}" "${shared[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir perhaps)" -o "$work/pc_shared"
"$work/pc_shared" "$work/pc_shared.perhaps"
"$compiler" "${objects[@]}" "${static[@]/-lperhaps/-l:libperhaps.a}" -o "$work/pc_static"
"$work/pc_static" "$work/pc_static.perhaps"
! ldd "$work/pc_static" | grep libperhaps || exit 1

echo '-- add_subdirectory, in a project with another standard and its own flags'
cmake -S "$here/embedding" -B "$work/embedding" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_CXX_FLAGS_DEBUG= >"$work/embedding.log" ||
  { cat "$work/embedding.log"; exit 1; }
! grep -q -- '-Werror' "$work/embedding/build.ninja" || { echo '-Werror is forced on an embedding project'; exit 1; }
cmake --build "$work/embedding" >"$work/embedding.log" || { cat "$work/embedding.log"; exit 1; }
"$work/embedding/program" "$work/embedding.perhaps"
