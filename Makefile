# Makefile -- the front door; CMake does the work.
#
#   make demo      PageRank on workers that straggle, vanish and arrive
#   make test      every idea once, in three builds: plain, address+undefined, thread
#   make check     one build, without the tests that take long: after an edit
#   make nightly   everything, at full scale, under every BLAS kernel, and campaigns
#   make release   besides, what is installed, packages, the ABI, Slurm, and speed against BEFORE=FILE
#   make campaign  honest faults and hostile packets, EVENTS=20000 of them [TESTS=...]
#   make fuzz      every parser and both ends of the wire, SECONDS=60 each
#   make coverage  which lines of src these reach
#   make format    lay out the C files as .clang-format has it
#   make python    the Python package in python/, in place
#   make wheel     build/wheel/kofn-*.whl, with everything inside, for pip
#   make deb       build/deb/*.deb, for Debian 12
#   make test-torch  its training of PyTorch modules; installs python3-torch
#   make bench     ratios against real alternatives, measured in one run
#   make install   PREFIX=/usr/local DESTDIR=
#   make clean

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
FLAGS   = -DCMAKE_INSTALL_PREFIX=$(PREFIX)
QUIET   = --log-level=WARNING

all: build

build:
	@scripts/need build
	@scripts/need --have doxygen || echo "the C reference is left out: it needs doxygen" >&2
	@cmake $(QUIET) -S . -B build/plain $(FLAGS) -DKOFN_TESTS=OFF -DCMAKE_RULE_MESSAGES=OFF >/dev/null
	@cmake --build build/plain -j $(JOBS) -- --no-print-directory -s

test:
	@scripts/need test
	@scripts/test

check:
	@scripts/need test
	@scripts/test quick

nightly:
	@scripts/need test
	@scripts/need fuzz || echo "libFuzzer is left out" >&2
	@scripts/test night
	@scripts/campaign $(or $(EVENTS),20000)

release: build
	@scripts/abi build/plain/libkofn.so || [ $$? = 77 ]
	@scripts/need test
	@scripts/test release
	@scripts/campaign $(or $(EVENTS),20000)
	@scripts/bench
	@if [ -n "$(BEFORE)" ]; then scripts/bench-compare $(BEFORE) build/bench.json; \
	 else echo "speed is not compared: BEFORE=FILE, a build/bench.json of before" >&2; fi

SECONDS = 60

campaign:
	@scripts/need test
	@scripts/campaign $(or $(EVENTS),20000) $(TESTS)

fuzz:
	@scripts/need fuzz
	@scripts/fuzz $(SECONDS) $(TARGETS)

coverage:
	@scripts/need coverage
	@scripts/test coverage

bench:
	@scripts/need build
	@scripts/bench

format:
	@scripts/format

python: build
	@scripts/need python
	@$(or $(PYTHON),/usr/bin/python3) python/kofn/_build.py
	@echo "PYTHONPATH=$(CURDIR)/python python3 -c 'import kofn'"

wheel:
	@scripts/need wheel
	@scripts/wheel

deb:
	@scripts/need deb
	@scripts/deb

test-torch: python
	@scripts/need torch || echo "what needs PyTorch is skipped" >&2
	@cd python/tests_torch && PYTHONPATH=$(CURDIR)/python OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 \
	    $(or $(PYTHON),/usr/bin/python3) -m pytest -q -rs -p no:cacheprovider

demo: build
	@scripts/demo

install: build
	@cmake --install build/plain

clean:
	rm -rf build

.PHONY: all build test check nightly release campaign fuzz coverage bench format python wheel deb test-torch demo install clean
