#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Debian package: it installs below a folder of its own, records and answers there, and leaves nothing behind."""
import glob
import os
import subprocess

import tbdtest


def made(folder):
    tbdtest.need("cpack", "dpkg-deb", "dpkg-shlibdeps", "strip", "gzip")
    result = tbdtest.run(["cpack", "-G", "DEB", "-B", folder, "--config", os.path.join(tbdtest.BUILD, "CPackConfig.cmake")], timeout=600)
    assert result.code == 0, result
    packages = glob.glob(folder + "/*.deb")
    assert len(packages) == 1, packages
    return packages[0]


def files_of(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


def use(root, folder):
    """Both programs, by the links in bin."""
    env = {"TBD_DIR": os.path.join(folder, "traces"), "PATH": root + "/usr/bin:" + os.environ["PATH"]}
    packed = tbdtest.run(["tbd", "record", "--", "gzip", "-c", "/etc/passwd"], env=env)
    assert packed.code == 0 and packed.out[:2] == b"\x1f\x8b", packed
    tbdtest.wait_organizers(env["TBD_DIR"])
    asked = tbdtest.run(["tbdq", "count", "syscall"], env=env)
    assert asked.code == 0 and b"libc.so.6!write" in asked.out, asked
    checked = tbdtest.run(["tbdq", "verify"], env=env)
    assert checked.code == 0, checked
    page = subprocess.run(["gzip", "-dc", root + "/usr/share/man/man1/tbdq.1.gz"], stdout=subprocess.PIPE, check=True).stdout
    assert b"SH COMMANDS" in page


def test_the_package_installs_works_and_goes(folder):
    package = made(folder)
    fields = subprocess.run(["dpkg-deb", "-f", package, "Package", "Depends"], stdout=subprocess.PIPE, check=True).stdout
    assert b"Package: tbd\n" in fields and b"libc6" in fields and b"libdw1" in fields, fields
    root = os.path.join(folder, "root")
    if os.geteuid() != 0:
        subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        return use(root, folder)
    for below in ("var/lib/dpkg/info", "var/lib/dpkg/updates", "var/log"):
        os.makedirs(os.path.join(root, below))
    open(os.path.join(root, "var/lib/dpkg/status"), "wb").close()
    dpkg = ["dpkg", "--root=" + root, "--force-depends", "--force-script-chrootless", "--log=/dev/null"]
    before = [name for name in files_of(root) if "/var/lib/dpkg/" not in name]
    done = tbdtest.run(dpkg + ["--install", package])
    assert done.code == 0, done
    use(root, folder)
    done = tbdtest.run(dpkg + ["--remove", "tbd"])
    assert done.code == 0, done
    with open(os.path.join(root, "var/lib/dpkg/status"), encoding="utf-8") as status:
        assert "Package: tbd\n" not in status.read()  # nothing is left to purge
    assert [name for name in files_of(root) if "/var/lib/dpkg/" not in name] == before
    assert not os.path.exists(root + "/usr"), os.listdir(root + "/usr")
    return None


if __name__ == "__main__":
    tbdtest.main(test_the_package_installs_works_and_goes)
