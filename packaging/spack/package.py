# Copyright the numalab authors. MIT or Apache-2.0.
"""numalab for Spack; numalab's source has a copy in packaging/spack."""

from spack.package import *


class Numalab(MakefilePackage):
    """Measures what memory placement costs on a machine, and shows whether a change (a kernel
    setting, page size, allocator, hypervisor option or placement) really helps."""

    homepage = "https://github.com/numalab/numalab"
    git = "https://github.com/numalab/numalab.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("gmake", type="build")
    # Guests and the emulator; measuring needs neither.
    depends_on("qemu@7.2:", type="run", when="+guests")

    variant("guests", default=False, description="QEMU for guests and the memory emulator")

    def build(self, spec, prefix):
        cargo = which("cargo")
        for package in ("numalab", "numalab-emulator"):
            cargo("build", "--release", "--locked", "-p", package)

    def install(self, spec, prefix):
        install_tree("integrations/suite", prefix.share.numalab.integrations.suite)
        mkdirp(prefix.bin, prefix.lib.numalab, prefix.share.man.man1)
        install("target/release/numalab", prefix.bin)
        install("target/release/libnumalab_emulator.so", prefix.lib.numalab)
        Executable(prefix.bin.numalab)("man", prefix.share.man.man1)

    def test_topology(self):
        """sees this machine"""
        out = Executable(self.prefix.bin.numalab)("topology", output=str)
        assert "node" in out
