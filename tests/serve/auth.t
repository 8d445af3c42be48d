#!/usr/bin/env python3
"""Who may ask: names in Host against DNS rebinding, the token, and POST from pages."""
import fcntl
import os
import socket
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *

own_network()


@test
def a_foreign_host_is_403_naming_the_flag_and_local_names_pass():
    with server("--allowed-host", "*.example.com", "--allowed-host", "box") as d:
        host = lambda h: d.raw(get_line(PPROF + "cmdline", "Connection: close", *(["Host: " + h] if h else [])))
        for name in ("127.0.0.1:%d" % d.port, "[::1]:1", "[::1]", "::1", "10.1.2.3", "localhost", "LOCALHOST:6060",
                     "localhost.", os.uname().nodename, "a.example.com", "A.Example.COM:80", "box", ""):
            equal((status_of(host(name)), name), (200, name))
        for name in ("evil.example", "evil.example:%d" % d.port, "localhost.evil.example", "127.0.0.1.evil.example",
                     "example.com", "boxer", "127.0.0.1x", "[::1].evil.example", "a" * 300):
            data = host(name)
            if name.startswith("["):
                continue
            equal((status_of(data), name), (403, name))
            contains(data, b"--profiling-allowed-host")
            contains(data, b"X-Go-Pprof: 1")


def second_address(text):
    """One more for the loopback device that is no loopback address: SIOCSIFADDR."""
    with socket.socket() as s:
        fcntl.ioctl(s, 0x8916, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(text)))


@test
def a_listener_of_all_addresses_looks_at_host_where_it_is_asked_at_a_loopback_one():
    need_own_network()
    second_address("10.9.8.7")
    for address in ":0", "0.0.0.0:0":
        with server("--address", address) as d:
            for host, name, want in (("127.0.0.1", "evil.example", 403), ("127.0.0.1", "localhost", 200),
                                     ("127.9.9.9", "evil.example", 403), ("10.9.8.7", "any.example", 200)):
                d.host = host
                equal(d.get(PPROF + "cmdline", headers={"Host": name}).status, want, "%s at %s, %s" % (name, host, address))
                equal(d.get(PPROF + "symbol", "POST", "0x1", {"Host": name}).status, want, "POST")


def token_file(t, text, mode=0o600):
    path = os.path.join(t, "token")
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


@test
def with_a_token_every_route_needs_it_and_it_is_neither_logged_nor_linked():
    with tempdir() as t, server("--token-file", token_file(t, "s3cret\n")) as d:
        for path in ("", "cmdline", "heap", "profile?seconds=1", "symbol", "nope"):
            r = d.get(PPROF + path)
            is_error(r, 401)
            need(r.headers["www-authenticate"].startswith("Bearer"), "WWW-Authenticate")
        is_error(d.get("/"), 401)
        bearer = lambda v: d.get(PPROF + "cmdline", headers={"Authorization": v}).status
        equal(bearer("Bearer s3cret"), 200)
        equal(bearer("bearer s3cret"), 200)
        for value in ("Bearer s3cre", "Bearer s3crets", "Bearer ", "Bearer", "s3cret", "Basic s3cret", "Bearer s3creT"):
            equal((bearer(value), value), (401, value))
        query = lambda q: d.get(PPROF + "cmdline" + q).status
        equal([query(q) for q in ("?token=s3cret", "?a=b&token=%733cret", "?token=x", "?token=", "?Token=s3cret")],
              [200, 200, 401, 401, 401])
        page = d.get(PPROF + "?token=s3cret")
        equal(page.status, 200)
        r = d.get("/debug/pprof?token=s3cret")
        equal(r.headers["location"], PPROF + "?token=s3cret")
        equal(d.get(PPROF + "profile?seconds=1&token=s3cret").status, 200)
        d.wait_log("profile finished")
        for text in (page.text, r.text, d.output()):
            need("s3cret" not in text, "the token is in:\n" + text)


@test
def a_unix_socket_without_a_file_is_asked_for_the_token_and_none_for_its_host():
    name = "component-test-auth-%d" % os.getpid()
    with tempdir() as t:
        for path, address, status in ("@" + name, "\0" + name, 401), (t + "/s", t + "/s", 200):
            with server("--token-file", token_file(t, "s3cret"), "--socket", path):
                for query, want in ("", status), ("?token=s3cret", 200):
                    with socket.socket(socket.AF_UNIX) as s:
                        s.settimeout(DEADLINE)
                        s.connect(address)
                        s.sendall(get_line(PPROF + "cmdline" + query, "Host: evil.example", "Connection: close"))
                        equal(status_of(receive_all(s)), want, path + query)


@test
def a_token_in_base64_is_known_in_a_query_too():
    """a token with '+', '/' and '=', as base64 has them, is known in a query, escaped or not"""
    with tempdir() as t, server("--token-file", token_file(t, "a+b/c==\n")) as d:
        equal([d.get(PPROF + "?token=" + q).status for q in ("a+b/c==", "a%2Bb%2Fc%3D%3D", "a+b/c=", "a-b/c==", "+")],
              [200, 200, 401, 401, 401])


@test
def a_token_file_is_refused_when_others_may_write_it_and_warned_of_when_they_may_read_it():
    with tempdir() as t:
        for mode in (0o620, 0o602, 0o666):
            with server("--token-file", token_file(t, "x", mode), start=False) as d:
                answer = d.command("start")
                contains(answer, "-1 token file '%s/token' may be written by others (mode %04o)" % (t, mode))
        for mode in (0o640, 0o604):
            with server("--token-file", token_file(t, "x", mode)) as d:
                contains(d.output(), "warning: the token file may be read by others")
        for text, why in (("", "is empty"), (" \n\n", "is empty"), ("a b", "a blank or a control"),
                          ("a" * 5000, "longer than")):
            with server("--token-file", token_file(t, text), start=False) as d:
                contains(d.command("start"), why)
        with server("--token-file", t, start=False) as d:
            contains(d.command("start"), "is not a regular file")
        with server("--token-file", t + "/none", start=False) as d:
            contains(d.command("start"), "No such file or directory")


@test
def a_token_file_of_another_user_may_be_read_by_its_group():
    if os.geteuid() != 0:
        raise Skip("files are given away by root alone")
    with tempdir() as t:
        for mode, warned in ((0o640, False), (0o604, True)):
            os.chown(token_file(t, "x", mode), 65532, -1)
            with server("--token-file", t + "/token") as d:
                equal("may be read by others" in d.output(), warned, oct(mode))


@test
def reload_takes_the_new_token_and_keeps_the_old_one_when_it_cannot():
    with tempdir() as t, server("--token-file", token_file(t, "old")) as d:
        status = lambda token: d.get(PPROF + "cmdline?token=" + token).status
        equal((status("old"), status("new")), (200, 401))
        token_file(t, "new")
        equal(d.command("reload"), "0")
        equal((status("old"), status("new")), (401, 200))
        token_file(t, "")
        contains(d.command("reload"), "is empty")
        equal(status("new"), 200)


@test
def a_post_from_a_page_of_another_origin_is_refused():
    with server() as d:
        post = lambda origin: d.get(PPROF + "symbol", method="POST", body="0x1",
                                    headers={"Origin": origin} if origin else {})
        equal(post(None).status, 200)
        equal(post("http://127.0.0.1:%d" % d.port).status, 200)
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            is_error(post(origin), 403)


main()
