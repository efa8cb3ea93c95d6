"""The kernels in the package: what is embedded, and that NVRTC is not needed for it."""

import json
import os
import struct
import subprocess
import sys

import pytest
from pytapeloop import _native
from pytapeloop._program import program

NVCC, TARGETS, BINARIES = _native.kernels()
# Set where the wheel has to hold kernels: then their lack fails.
REQUIRED = os.environ.get("TAPELOOP_KERNELS") == "required"
NO_NVRTC = {**os.environ, "TAPELOOP_NVRTC": "/nowhere/libnvrtc.so"}

needs_kernels = pytest.mark.skipif(not TARGETS and not REQUIRED, reason="built without nvcc")


def images(fat_binary):
    """The targets of the images of a fat binary, by nvcc's names."""
    found, at = [], 0
    while at < len(fat_binary):
        magic, _, header, size = struct.unpack_from("<IHHQ", fat_binary, at)
        assert magic == 0xBA55ED50
        at += header
        end = at + size
        while at < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", fat_binary, at)
            (machine,) = struct.unpack_from("<I", fat_binary, at + 28)
            assert size > 0
            found.append({1: "compute", 2: "sm"}[kind] + f"_{machine}")
            at += header + size
    return found


def findings(environment=NO_NVRTC):
    command = [program(), "doctor", "--json"]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
    return {finding["label"]: finding for finding in json.loads(printed)}


@needs_kernels
def test_the_module_holds_an_image_of_each_kernel_for_each_target():
    assert NVCC and any(target.startswith("sm_") for target in TARGETS)
    assert "sasa" in BINARIES and "fused" not in BINARIES
    for name, binary in BINARIES.items():
        assert sorted(images(binary)) == sorted(TARGETS), name


@needs_kernels
def test_the_program_holds_them_and_does_not_need_nvrtc():
    found = findings()
    assert found["kernels"]["status"] == "good"
    assert f"nvcc {NVCC} for {' '.join(TARGETS)}" in found["kernels"]["detail"]
    assert found["nvrtc"]["status"] == "not_needed"


@pytest.mark.skipif(bool(TARGETS) or REQUIRED, reason="the kernels are embedded")
def test_a_module_without_kernels_says_that_nvrtc_compiles_them():
    assert (NVCC, TARGETS, BINARIES) == ("", [], {})
    found = findings()
    assert found["kernels"]["status"] == "not_needed"
    assert "NVRTC compiles them" in found["kernels"]["detail"]
    assert found["nvrtc"]["status"] == ("missing" if "device" in found else "not_needed")
    assert "/nowhere/libnvrtc.so" in found["nvrtc"]["detail"]


@needs_kernels
@pytest.mark.skipif("device" not in findings(), reason="no GPU")
def test_a_gpu_computes_without_nvrtc_and_without_its_cache(samples, tmp_path):
    """In a process of its own, as the libraries are looked for once."""
    script = """
import sys, pytapeloop
for backend in ("cuda", "cpu"):
    table = pytapeloop.features(sys.argv[1], ["sasa", "torsions"], backend=backend)
    print(table.to_arrow().to_pylist())
"""
    environment = {**NO_NVRTC, "TAPELOOP_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script, samples / "1a8o.pdb"]
    ended = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    cuda, cpu = ended.stdout.splitlines()
    assert cuda == cpu and list(tmp_path.iterdir()) == []
