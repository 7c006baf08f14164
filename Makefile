# The commands of a working day. CMake does the building (CMakePresets.json); this file only names the calls.
#   make demo | test | build | cuda | fuzz | soak | format | packages
# PRESET=ci builds with warnings as errors, PRESET=sanitize with address and undefined-behaviour sanitizers.

PRESET ?= release
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
SOAK_STEPS ?= 20000

build_dir = build/$(if $(filter ci,$(PRESET)),release,$(PRESET))
ccache := $(shell command -v ccache 2>/dev/null)
launcher = $(if $(ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

.PHONY: build test demo cuda fuzz soak format format-check packages
.DEFAULT_GOAL := build

packages:
	@tools/install_packages

build: packages
	cmake --preset $(PRESET) $(launcher) --log-level=WARNING
	cmake --build $(build_dir) --parallel $(JOBS)

test: build
	tests/run_suite --build $(build_dir)

demo: packages
	cmake --preset $(PRESET) $(launcher) --log-level=WARNING
	cmake --build $(build_dir) --parallel $(JOBS) --target tenon
	tools/demo

# With nvcc: the program and the tests for a GPU, whose kernels may not spill registers. Nothing of it runs here.
cuda: packages
	cmake --preset cuda $(launcher) $(if $(ccache),-DCMAKE_CUDA_COMPILER_LAUNCHER=ccache) \
	  -DTENON_CUOBJDUMP=$$(tools/find_cuobjdump) --log-level=WARNING
	cmake --build build/cuda --parallel $(JOBS) --target tenon tenon_cuda_test

# Every fuzz target for FUZZ_SECONDS each, or for FUZZ_RUNS inputs; a crash leaves its input in build/fuzz.
fuzz: packages
	@command -v clang++ >/dev/null || { echo "make fuzz needs clang: apt-get install clang" >&2; exit 1; }
	cmake --preset fuzz $(launcher) --log-level=WARNING
	cmake --build build/fuzz --parallel $(JOBS) --target fuzzers
	tools/fuzz $(if $(FUZZ_RUNS),--runs $(FUZZ_RUNS),--seconds $(FUZZ_SECONDS)) build/fuzz

# A tiny model for SOAK_STEPS optimiser steps, twice: nothing may grow, and every bit must be the same.
soak: build
	tests/soak --build $(build_dir) --steps $(SOAK_STEPS)

sources = git ls-files -z -- '*.cc' '*.h' '*.cu' '*.cuh'

format:
	$(sources) | xargs -0 clang-format -i

format-check: packages
	$(sources) | xargs -0 clang-format --dry-run -Werror
