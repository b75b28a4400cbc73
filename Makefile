# Two commands: `make run` shows what it does, `make test` proves it. Both install what is missing first.
.DEFAULT_GOAL := help
.PHONY: help run redis python npm page serve test test-web test-languages test-valkey test-defrag soak fuzz
.PHONY: bench bench-redis bench-python bench-npm bench-lsm install deb doc abi
.PHONY: format lint clean

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
CONTENDERS ?=
BENCH_ARGS ?=
PORT ?= 8000
SOAK_ARGS ?=
SUITE ?=
# Two jobs a core would fit in memory, but the tests time nothing: one each.
JOBS ?= $(shell nproc)
export CTEST_PARALLEL_LEVEL = $(JOBS)
export CLICOLOR_FORCE =

SOURCES = $(shell git ls-files -co --exclude-standard '*.cc' '*.h')

help:
	@echo 'make run      build the tool and show it at work on a million keys'
	@echo 'make redis    a server with the module on a free port: BF.* and CF.* until Ctrl-C'
	@echo 'make python   the package in build/release/python, for PYTHONPATH'
	@echo 'make npm      the package for JavaScript, build/npm/perhaps-*.tgz'
	@echo 'make page     the page in the browser, build/page/index.html;  make serve  shows it on PORT=$(PORT)'
	@echo 'make test     the whole suite, then its fast part under the sanitizers'
	@echo 'make test-languages  Go and Rust; six languages write the same bytes and read those of the others'
	@echo 'make test-web  the npm package in node, and the page in a real browser      SUITE=package, page or monkey'
	@echo 'make bench    measure against the limit and against others   CONTENDERS=dir BENCH_ARGS=...'
	@echo 'make test-valkey, make test-defrag  the suite of the Redis module on Valkey 8, on a Redis 8 that defragments'
	@echo 'make bench-redis  what the Redis module costs, and what its batches gain'
	@echo 'make bench-python  what the Python package costs, beside the same calls in C++    BENCH_ARGS=...'
	@echo 'make bench-npm  the Bloom filters of npm, beside the package'
	@echo 'make bench-lsm  real databases with and without filters, reads counted      BENCH_ARGS=...'
	@echo 'make soak     the campaign of doc/reliability.md, about a day, resumable    SOAK_ARGS=--quick: ten minutes'
	@echo 'make fuzz     every fuzz target for FUZZ_SECONDS=$(FUZZ_SECONDS)'
	@echo 'make install  library, headers and tool under PREFIX=$(PREFIX), below DESTDIR'
	@echo 'make deb      the Debian packages in build/deb, and what lintian says of them'
	@echo 'make doc      the API reference, build/doc/html/index.html; a symbol without a sentence is an error'
	@echo 'make abi      is this library compatible with the last release?'
	@echo 'make format   clang-format everything;  make lint  clang-format and clang-tidy as errors'

run:
	@scripts/setup run
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release --target perhaps-cli
	@scripts/demo build/release/perhaps build/demo

redis:
	@scripts/setup redis
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release --target perhaps-redis
	@scripts/serve-redis build/release/perhaps-redis.so

python:
	@scripts/setup python
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake -S . -B build/release -DPERHAPS_PYTHON=ON >/dev/null
	@cmake --build build/release --target perhaps_python
	@echo 'PYTHONPATH=build/release/python python3'

npm page:
	@scripts/setup web
	@scripts/build-web $(subst npm,package,$@)

serve: page
	@echo 'http://localhost:$(PORT)/ until Ctrl-C'
	@python3 -m http.server --directory build/page --bind 127.0.0.1 $(PORT)

test:
	@scripts/setup test
	@scripts/run-tests

test-web:
	@scripts/setup test
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release --target perhaps-cli
	@scripts/test-web $(SUITE)

test-languages:
	@scripts/setup languages web
	@scripts/test-languages

bench:
	@scripts/setup bench
	@cmake --preset bench -DPERHAPS_CONTENDERS=$(abspath $(CONTENDERS)) >/dev/null
	@cmake --build build/bench --target perhaps-bench
	@build/bench/perhaps-bench $(BENCH_ARGS)

# The same suite on other servers, which are fetched; without them these fail.
test-valkey test-defrag: test-%:
	@scripts/setup test
	@test -f build/release/build.ninja || cmake --preset release >/dev/null
	@cmake --build build/release --target perhaps-redis
	@server=$$(scripts/fetch-redis $*) && export PERHAPS_REDIS_SERVER=$$server \
	  PERHAPS_REDIS_MODULE=$(CURDIR)/build/release/perhaps-redis.so && \
	  for suite in surface persistence own_types hostile budget replay valkey_bloom cluster \
	    $(if $(filter defrag,$*),defrag); do \
	    python3 test/redis/$${suite}_test.py || exit 1; done

bench-redis:
	@scripts/setup redis
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release --target perhaps-redis
	@python3 bench/redis.py build/release/perhaps-redis.so $(BENCH_ARGS)

bench-python:
	@scripts/setup test
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake -S . -B build/release -DPERHAPS_PYTHON=ON >/dev/null
	@cmake --build build/release --target perhaps_python perhaps-bench-python
	@PYTHONPATH=build/release/python /usr/bin/python3 bench/python.py build/release/perhaps-bench-python.so $(BENCH_ARGS)

bench-lsm:
	@scripts/setup bench
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release --target perhaps-cli perhaps-bench-lsm
	@build/release/perhaps bench lsm $(BENCH_ARGS)

# The Bloom filters of npm, by name and version, beside the package.
bench-npm: npm
	@mkdir -p build/npm-bench && cp bench/npm/package.json build/npm-bench
	@cd build/npm-bench && npm install --no-package-lock --no-audit --no-fund --ignore-scripts --silent
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release --target perhaps-bench-npm
	@node bench/npm.mjs build/npm build/npm-bench build/release/perhaps-bench-npm $(BENCH_ARGS)

soak:
	@scripts/setup soak fuzz
	@scripts/soak $(SOAK_ARGS)

fuzz:
	@scripts/setup fuzz
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz
	@scripts/run-fuzzers build/fuzz/fuzz $(FUZZ_SECONDS)

# Builds only if nothing has been built: `sudo make install` after `make` must not leave files owned by root.
install:
	@test -f build/release/build.ninja || cmake --preset release -DPERHAPS_TESTS=OFF >/dev/null
	@cmake --build build/release
	@cmake --install build/release --prefix $(PREFIX)

deb:
	@scripts/setup deb
	@scripts/build-deb build/deb

doc:
	@scripts/setup doc
	@scripts/build-doc

abi:
	@scripts/setup abi
	@scripts/check-abi

format:
	@scripts/setup lint
	@clang-format-14 -i $(SOURCES)

lint:
	@scripts/setup lint
	@clang-format-14 --dry-run -Werror $(SOURCES)
	@cmake --preset lint >/dev/null
	@scripts/run-clang-tidy build/lint $(JOBS)
	@python3 test/tidy_test.py .
	@echo 'lint: clean'

clean:
	@rm -rf build
