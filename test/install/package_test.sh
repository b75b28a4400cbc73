#!/usr/bin/env bash
# Promise: what `make install` puts on a machine can be used by find_package, by pkg-config and as a subproject, shared
# and static, and code compiled with -mavx2 and without it agrees; the tool finds the programs beside it, and its pages
# and completions are there. Would notice: a header or a dependency that was not installed, a path into the build
# folder, flags forced on the user, a command without a manual, a link to a page that stayed behind, a module
# that a server refuses to load.
#   package_test.sh BUILD_FOLDER THIS_FOLDER COMPILER
set -euo pipefail
build=$1 here=$2 compiler=$3
work=$build/test/package
prefix=$work/prefix
rm -rf "$work"
mkdir -p "$work"
refuse() { echo "FAILED: $*"; exit 1; }

cmake --install "$build" --prefix "$prefix" >/dev/null
# The headers of the tree are out of reach from here on; so is the library, which is found by name.
! grep -rIl "$(dirname "$here")" "$prefix" || refuse 'an installed file names the source tree'
for file in include/perhaps/detail/isa.h bin/perhaps bin/perhaps-mpi share/man/man1/perhaps.1; do
  [[ -s $prefix/$file ]] || refuse "not installed: $file"
done
[[ $(find "$prefix/include" \( -path '*/perhaps/*.h' -o -name perhaps.h \) | wc -l) == \
   $(find "$here/../../include" -name '*.h' | wc -l) ]] || refuse 'some headers are not installed'

echo '-- pages, manual, completions'
python3 "$here/../links_test.py" "$prefix/share/doc/perhaps"
perhaps=$prefix/bin/perhaps
mapfile -t commands < <("$perhaps" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
((${#commands[@]} >= 15)) || refuse "only ${#commands[@]} commands in --help"
for command in "${commands[@]}" sst 'bench lsm'; do
  # shellcheck disable=SC2086  # two words
  help=$("$perhaps" $command --help)
  [[ $'\n'$help == *$'\n'"Usage: perhaps $command"* ]] || refuse "perhaps $command is not there"
  grep -qx "\.SS $command" "$prefix/share/man/man1/perhaps.1" || refuse "no manual of perhaps $command"
done
groff -man -ww -Tascii "$prefix/share/man/man1/perhaps.1" 2>&1 >/dev/null | { ! grep .; } || refuse 'groff complains'
completed() {  # completed WORD...: what bash offers for the last of them
  bash -c 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _perhaps; echo "${COMPREPLY[@]}"' \
    "$prefix/share/bash-completion/completions/perhaps" perhaps "$@"
}
[[ $(completed ss) == sst && $(completed sst --ver) == --verify ]] || refuse 'bash does not complete perhaps sst'
[[ $(completed bench '') == lsm && $(completed bench lsm --engine r) == rocksdb ]] &&
  [[ $(completed bench --js) == --json ]] || refuse 'bash does not complete perhaps bench lsm'
for file in share/zsh/vendor-completions/_perhaps share/fish/vendor_completions.d/perhaps.fish; do
  grep -q 'LevelDB and RocksDB tables' "$prefix/$file" || refuse "no perhaps sst in $file"
done

echo '-- the module, by its line of configuration'
cd "$work"  # the name of a socket must be short
redis-server "$prefix/share/doc/perhaps-redis/examples/perhaps-redis.conf" --port 0 --unixsocket redis.sock --save '' \
  >redis.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until [[ $(redis-cli -s redis.sock bf.add key item 2>/dev/null) == 1 ]]; do
  kill -0 $server 2>/dev/null || { cat redis.log; refuse 'a server does not load the installed module'; }
done
kill $server

echo '-- find_package'
cmake -S "$here/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_COMPILER="$compiler" >"$work/consumer.log" || { cat "$work/consumer.log"; exit 1; }
cmake --build "$work/consumer" >"$work/consumer.log" || { cat "$work/consumer.log"; exit 1; }
for program in with_default with_shared with_static; do "$work/consumer/$program" "$work/$program.perhaps"; done
[[ $(ldd "$work/consumer/with_default") == *"$prefix/"*libperhaps.so* ]] || refuse 'the default is static'
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

echo '-- the plug-ins, by pkg-config, with the shared library'
for engine in leveldb rocksdb; do
  read -ra flags < <(pkg-config --cflags --libs "perhaps_$engine")
  "$compiler" -std=c++20 -O0 "$here/consumer/$engine.cc" "${flags[@]}" \
    -Wl,-rpath,"$(pkg-config --variable=libdir perhaps)" -o "$work/pc_$engine"
  "$work/pc_$engine"
  [[ $(ldd "$work/pc_$engine") == *"$prefix/"*libperhaps.so* ]] || refuse "pc_$engine is not linked with libperhaps.so"
done

echo '-- C99, and C++ with the C header alone'
for language in c c++; do
  for cc in gcc clang-14; do
    [[ $language == c ]] && std=c99 || std=c++11
    "$cc" -x $language -std=$std -pedantic -Wall -Wextra -Werror "-I$prefix/include" \
      "$here/consumer/plain_c.c" -x none "${shared[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir perhaps)" \
      -o "$work/plain_$language"
    "$work/plain_$language" "$work/plain_$language.perhaps"
  done
done

bash "$here/embedding_test.sh" "$work/embedding" "$here" "$compiler" "$(find "$prefix" -name libperhaps.a)"
