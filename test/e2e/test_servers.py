#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers under load on loopback: clients get every answer, the servers end as they are told to, and each of
their processes was recorded whole and replays."""
import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import time
import urllib.request

import inputs
import tbdtest


@contextlib.contextmanager
def served(argv, folder, answers):
    """A traced server from the moment `answers()` is true; it must end with status 0 when it gets SIGTERM."""
    process = tbdtest.start(argv, folder + "/traces", stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(answers, process)
        yield process
        process.send_signal(signal.SIGTERM)
        code = process.wait(100)
        text = process.stderr.read()
        assert code == 0 and not text, (code, text)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        process.stderr.close()


def wait_for(answers, process):
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError):
            if answers():
                return
        time.sleep(0.05)
    raise AssertionError("the server does not answer (status %s)" % process.poll())


def talk(port, *command):
    """One request in redis' protocol; the first line of the answer."""
    request = b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in command)
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(request)
        return connection.makefile("rb").readline()


def test_redis(folder):
    port, requests = tbdtest.free_port(), b"100000" if tbdtest.LONG else b"2000"
    argv = [tbdtest.need("redis-server"), "--port", str(port), "--save", "", "--dir", folder]
    with served(argv, folder, lambda: talk(port, b"PING") == b"+PONG\r\n"):
        load = tbdtest.run([tbdtest.need("redis-benchmark"), "-p", str(port), "-q", "-c", "50", "-n", requests,
                            "-t", "set,get,lpush,mset"], timeout=280)
        assert load.code == 0 and b"MSET" in load.out, load
        assert talk(port, b"LLEN", b"mylist") == b":" + requests + b"\r\n"
    tbdtest.check_traces(folder + "/traces")


NGINX = """
%s
worker_processes 4; daemon off; pid pid; error_log stderr error;
events { worker_connections 256; accept_mutex on; }
http {
    access_log off;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
    limit_req_zone $binary_remote_addr zone=shared:1m rate=100000r/s;
    server {
        listen 127.0.0.1:%d;
        location / { limit_req zone=shared burst=10000; gzip on; gzip_types text/plain; root html; }
    }
}
"""


def fetch(port, name, **headers):
    request = urllib.request.Request("http://127.0.0.1:%d/%s" % (port, name), headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


def nginx_files(folder, port):
    os.makedirs(folder + "/html")
    inputs.text(folder + "/html/text.txt", 50000)
    with open(folder + "/nginx.conf", "w", encoding="utf-8") as f:
        f.write(NGINX % ("user root;" if os.geteuid() == 0 else "", port))


def test_nginx(folder):
    """A master and four workers that share a memory zone."""
    nginx, port, requests = tbdtest.need("nginx", "ab"), tbdtest.free_port(), 5000 if tbdtest.LONG else 400
    nginx_files(folder, port)
    with open(folder + "/html/text.txt", "rb") as f:
        wanted = hashlib.sha256(f.read()).hexdigest()
    argv = [nginx, "-p", folder, "-c", folder + "/nginx.conf", "-e", "stderr"]
    with served(argv, folder, lambda: hashlib.sha256(fetch(port, "text.txt")).hexdigest() == wanted):
        load = tbdtest.run(["ab", "-q", "-r", "-n", str(requests), "-c", "20", "-H", "Accept-Encoding: gzip",
                            "http://127.0.0.1:%d/text.txt" % port], timeout=280)
        assert load.code == 0, load
        figures = dict(line.split(b":", 1) for line in load.out.splitlines() if b":" in line)
        assert int(figures[b"Complete requests"]) == requests and int(figures[b"Failed requests"]) == 0, load.out
    traces = tbdtest.check_traces(folder + "/traces", 5)
    assert sum(trace.info()["forked"] for trace in traces) == 4, traces


if __name__ == "__main__":
    tbdtest.main(test_redis, test_nginx)
