#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Commands that every system has: the same results traced, with the program's own code, and free; every process's trace is
whole and replays.  The short form runs a few of them, the long form all that are installed."""
import os
import shlex
import shutil

import tbdtest

# In a folder with text.txt, which is also the standard input, hello.c, data.json and data.xml.  OUT is a folder to write to.
FEW = """
column text.txt
sort -n -k2 text.txt
bash -c 'ls | sort; sleep 0.05 & wait; echo $?'
gzip -c text.txt
"""
ALL = FEW + """
xz -c text.txt
python3 -c 'import threading; t = [threading.Thread(target=print, args=("x",)) for i in range(5)]; [(x.start(), x.join()) for x in t]'
uniq -c text.txt
wc text.txt
sha1sum text.txt
sha512sum text.txt
b2sum text.txt
cksum text.txt
base64 text.txt
od -x text.txt
xxd text.txt
hexdump -C text.txt
tac text.txt
rev text.txt
nl text.txt
fmt text.txt
fold -w 20 text.txt
expand text.txt
cut -c1-5 text.txt
paste text.txt text.txt
join text.txt text.txt
comm text.txt text.txt
tr a-z A-Z
head -c 100 text.txt
tail -n 5 text.txt
split -n 3 text.txt OUT/split
csplit -s -f OUT/csplit text.txt 100
shuf --random-source=text.txt text.txt
seq 1 2000
factor 1234567890123 999999999989
expr 7 '*' 6
numfmt --to=iec 123456789
date -d @0 -u
ls -la /usr/lib
find /usr/share/doc -name copyright -newer /etc/passwd
du -s /usr/share/zoneinfo
stat -c %n text.txt
tar cf /dev/null --totals /usr/share/zoneinfo
bzip2 -c text.txt
zstd -c text.txt
lz4 -c text.txt
pigz -c text.txt
sed -n s/line/LINE/p text.txt
mawk '{s += $2} END {print s}' text.txt
grep -E '(x{5}|y)' text.txt
diff text.txt hello.c
cmp text.txt hello.c
bc -l hello.c
perl -MDigest::SHA=sha256_hex -e 'print sha256_hex("a" x 100000)'
python3 -c 'import json, re; print(json.load(open("data.json")))'
python3 -c 'import hashlib, zlib; print(hashlib.sha3_512(b"x" * 9999).hexdigest(), zlib.crc32(b"abc" * 999))'
python3 -c 'import subprocess; print(subprocess.run(["ls", "/"], capture_output=True).stdout)'
python3 -c 'import asyncio; asyncio.run(asyncio.sleep(0.01)); print(1)'
python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, range(20)))'
lua5.4 -e 's = 0; for i = 1, 100000 do s = s + i end; print(s)'
luajit -e 's = 0; for i = 1, 1000000 do s = s + i end; print(s)'
gcc -O2 -S -o - hello.c
gcc -O2 -o OUT/hello hello.c
g++ -x c++ -O2 -S -o - hello.c
nm -D /bin/ls
objdump -d /bin/true
readelf -a /bin/ls
strings /bin/ls
strip -o OUT/stripped /bin/ls
c++filt _ZNSt6vectorIiE
make --version
file /bin/ls text.txt hello.c
openssl dgst -sha256 text.txt
sqlite3 :memory: 'select sum(value) from generate_series(1, 1000);'
xmllint data.xml
jq . data.json
dash -c 'i=0; while [ $i -lt 200 ]; do i=$((i+1)); done; echo $i'
zsh -c 'for i in {1..100}; echo $i'
busybox sha256sum text.txt
id
uname -r
env -i A=1 env
timeout 5 true
nice -n 5 true
stdbuf -o0 cat text.txt
xargs -a text.txt -n 50 echo
dd if=text.txt of=/dev/null bs=7 status=none
readlink -f /usr/bin/awk
getconf PAGE_SIZE
locale
iconv -f latin1 -t utf16 text.txt
getent passwd root
dpkg-query -W
gdb -batch -ex 'print 40+2'
m4 text.txt
node -e 'console.log([...Array(100).keys()].reduce((a, b) => a + b))'
java -version
column -t text.txt
setarch -R true
prlimit --version
flock OUT/lock true
ipcs
"""


def inputs(folder):
    where = os.path.join(folder, "in")
    os.makedirs(os.path.join(where, "out"))
    texts = {"text.txt": "".join("line %d %s\n" % (i * 7919 % 1000, "x" * (i % 50)) for i in range(2000)),
             "hello.c": '#include <stdio.h>\nint main(void) { printf("%d\\n", 42); return 0; }\n',
             "data.json": '{"a": [1, 2, {"b": null}], "c": "d"}', "data.xml": '<a><b c="d">e</b></a>'}
    for name, text in texts.items():
        with open(os.path.join(where, name), "w", encoding="utf-8") as file:
            file.write(text)
    return where, texts["text.txt"].encode()


def commands():
    """Those whose programs are here."""
    lines = (ALL if tbdtest.LONG else FEW).strip().splitlines()
    argvs = [[word.replace("OUT", "out") for word in shlex.split(line)] for line in lines if line]
    found = [argv for argv in argvs if shutil.which(argv[0])]
    assert len(found) > len(argvs) / 2, found
    return found


def check(folder, options, replays=True):
    where, text = inputs(folder)
    number = 0
    for i, argv in enumerate(commands()):
        how = {"stdin": text, "cwd": where}
        native = tbdtest.run(argv, **how)
        if repr(native) != repr(tbdtest.run(argv, **how)):
            continue  # it tells the time, a process' number or an address
        root = os.path.join(folder, str(i))
        traced, _ = tbdtest.record(argv, root, options, **how)
        try:
            tbdtest.same(native, traced)
            if replays:
                tbdtest.check_traces(root)
        except AssertionError as error:
            raise AssertionError("%s: %s" % (shlex.join(argv), error)) from error
        shutil.rmtree(root)
        number += 1
    assert number >= (60 if tbdtest.LONG else 3), number


def test_commands_are_recorded(folder):
    check(folder, "window=50000")


def test_commands_play_natively(folder):
    check(folder, "mode=native")


def test_commands_run_free(folder):
    check(folder, "mode=crash", replays=False)


if __name__ == "__main__":
    tbdtest.main(*[t for n, t in sorted(globals().items()) if n.startswith("test_")])
