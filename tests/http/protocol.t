#!/usr/bin/env python3
"""The routes and the manners of HTTP: what Go's net/http/pprof promises, and each
trap that a server in C falls into by default."""
import gzip
import html
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *


@test
def head_sends_the_headers_of_get_and_no_body():
    with server() as d:
        for path in ("", "cmdline", "heap", "heap?debug=1", "nope", "symbol?0x1"):
            want = d.get(PPROF + path)
            head, body = head_and_body(d.raw(get_line(PPROF + path, "Connection: close", method="HEAD")))
            equal(body, b"", "after the header of HEAD " + path)
            contains(head, "X-Content-Type-Options: nosniff")
            contains(head, "Content-Type: " + want.headers["content-type"])
            contains(head, "Content-Length: ")


@test
def errors_are_plain_text_with_x_go_pprof_and_nosniff():
    with server() as d:
        is_error(d.get(PPROF + "nope"), 404, "Unknown profile\n")
        is_error(d.get(PPROF + "heap/"), 404, "Unknown profile\n")
        is_error(d.get(PPROF + "Heap"), 404, "Unknown profile\n")
        is_error(d.get(PPROF + "%3Cscript%3E"), 404, "Unknown profile\n")
        is_error(d.get(PPROF + "symbol/"), 404, "Unknown profile\n")
        r = d.get("/debug/pprofx")
        equal((r.status, r.text, r.headers.get("x-go-pprof")), (404, "404 page not found\n", None))
        equal(r.headers["content-type"], TEXT)


@test
def every_answer_has_a_content_type_that_was_meant():
    with server() as d:
        for path, want in (("", "text/html; charset=utf-8"), ("cmdline", TEXT), ("heap", BINARY),
                           ("heap?debug=1", TEXT), ("allocs?format=top", TEXT), ("symbol", TEXT)):
            r = d.get(PPROF + path)
            equal((r.status, r.headers["content-type"]), (200, want), path)


@test
def any_method_but_get_and_head_is_405_with_allow():
    with server() as d:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO", "CONNECT"):
            for path in ("", "heap", "cmdline", "profile"):
                r = d.get(PPROF + path, method=method)
                equal((r.status, r.headers.get("allow"), r.text), (405, "GET, HEAD", "Method Not Allowed\n"),
                      method + " " + path)
                equal(r.headers.get("x-go-pprof"), None)
                equal(r.headers["content-type"], TEXT)
        equal(d.get(PPROF + "symbol", method="PUT").status, 405)
        equal(d.get("/debug/pprof", method="POST").status, 405)


@test
def a_percent_encoded_name_is_decoded():
    with server() as d:
        equal(d.get("/debug/pprof/%68eap?debug=1").status, 200)
        equal(d.get("/debug%2Fpprof/cmdline").status, 200)
        equal(d.get("/debug/pprof/%zz").status, 400)
        equal(d.get("/debug/pprof/%00").status, 400)


@test
def unclean_paths_are_redirected_to_the_clean_one():
    with server() as d:
        for path, want in (("/debug/pprof", PPROF), ("/debug/pprof?x=1", PPROF + "?x=1"),
                           ("/debug/pprof//heap", PPROF + "heap"), ("/debug/pprof/../pprof/heap?debug=1",
                                                                   PPROF + "heap?debug=1"),
                           ("//evil.example/a", "/evil.example/a"), ("/debug/./pprof/", PPROF),
                           ("/a/..", "/"), ("/%22%3E/..//x%22", "/x%22")):
            r = d.get(path)
            equal((r.status, r.headers.get("location")), (301, want), path)
        r = d.get("/debug/pprof")
        equal(r.text, '<a href="/debug/pprof/">Moved Permanently</a>.\n\n')
        equal(r.headers["content-type"], "text/html; charset=utf-8")


@test
def symbol_sees_the_raw_query():
    with server() as d:
        text = d.get(PPROF + "heap?debug=1").text
        maps = open("/proc/%d/maps" % d.pid).read()
        pc = next(int(m.group(1), 16) for m in re.finditer(r"^([0-9a-f]+)-\S+ r-xp.*profiled_daemon", maps, re.M)) + 0x100
        names = lambda q, **kw: d.get(PPROF + "symbol" + q, **kw).text.split("\n")[1:-1]
        equal(names(""), [])
        both = names("?%#x+%d" % (pc, pc))
        equal(len(both), 2, "hex and decimal")
        need(both[0].startswith("%#x " % pc), both[0])
        equal(names("?%#x%%2B%#x" % (pc, pc)), [], "an escaped plus does not separate")
        equal(names("?%#x,%#x" % (pc, pc)), [])
        equal(len(names("?0%o" % pc)), 1, "octal")
        equal(names("?%x" % pc if not ("%x" % pc).isdigit() else "?zz"), [], "bare hex is not read")
        equal(names("?debug=1+zz++0x"), [])
        equal(len(names("?0x1", method="POST", body="%#x+%#x" % (pc, pc))), 2, "the body counts")
        equal(names("", method="POST", body="%#x\n" % pc), [], "a trailing newline spoils a word")
        long = d.get(PPROF + "symbol", method="POST", body="%#x+" % pc + "1" * 5000 + "+%#x" % pc).text
        need(long.endswith("reading request: bufio: buffer full\n"), long[-100:])
        need(text.startswith("heap profile: "), text[:40])


@test
def the_first_readable_parameter_wins_and_integers_are_read_as_by_atoi():
    with server() as d:
        is_text = lambda q: d.get(PPROF + "heap" + q).headers["content-type"] == TEXT
        for q in ("?debug=1", "?debug=1&debug=0", "?debug=%2B1", "?debug=01", "?debug=-1", "?x;y&debug=2",
                  "?%zz=1&debug=1", "?debug=%zz&debug=1", "?a&debug=1", "?debug=99999999999999999999", "?d%65bug=1"):
            need(is_text(q), "text for " + q)
        for q in ("", "?debug=0", "?debug=0&debug=1", "?debug=+1", "?debug=abc", "?debug=1.5", "?debug=0x1",
                  "?debug=true", "?debug=", "?Debug=1", "?debug=1;x"):
            need(not is_text(q), "binary for " + q)
        for q in ("0", "-1", "x", "1.5", "1s", "+1"):
            is_error(d.get(PPROF + "heap?seconds=" + q), 400,
                     'invalid value for "seconds" - must be a positive integer\n')
        is_error(d.get(PPROF + "heap?seconds=0&debug=1"), 400,
                 'invalid value for "seconds" - must be a positive integer\n')
        equal(d.get(PPROF + "heap?seconds=").status, 200)
        is_error(d.get(PPROF + "nope?seconds=x"), 404)
        is_error(d.get(PPROF + "heap?format=flame"), 400)


@test
def profiles_are_gzip_as_payload_and_accept_encoding_changes_nothing():
    with server() as d:
        r = d.get(PPROF + "heap", headers={"Accept-Encoding": "gzip", "Accept": "text/html", "Range": "bytes=0-3"})
        equal((r.status, r.headers.get("content-encoding")), (200, None))
        equal(r.headers["content-disposition"], 'attachment; filename="heap"')
        need(gzip.decompress(r.body), "an empty profile")


@test
def http_1_0_gets_no_chunks_and_a_closed_connection():
    with server() as d:
        head, body = head_and_body(d.raw(get_line(PPROF + "heap?debug=1", version="1.0")))
        need("chunked" not in head.lower(), head)
        contains(head, "Date: ")
        need(body.startswith(b"heap profile: "), body[:40])


@test
def one_connection_serves_many_requests_also_pipelined_and_after_a_body():
    with server() as d:
        with d.connect() as s:
            s.sendall(get_line(PPROF + "cmdline") * 3 + get_line(PPROF + "nope") +
                      get_line(PPROF + "heap", "Content-Length: 5", method="POST") + b"12345" +
                      get_line(PPROF + "cmdline", "Connection: close"))
            data = receive_all(s)
        equal([int(x) for x in re.findall(rb"HTTP/1\.1 (\d+) ", data)], [200, 200, 200, 404, 405, 200])


@test
def a_client_that_half_closes_is_answered():
    with server() as d:
        data = d.raw(get_line(PPROF + "heap?debug=1"), half_close=True)
        equal(status_of(data), 200)
        contains(data, b"heap profile: ")
        data = d.raw(get_line(PPROF + "cmdline") * 2, half_close=True)
        equal(data.count(b"HTTP/1.1 200"), 2)


@test
def bodies_come_by_length_or_in_chunks_and_after_100_continue():
    with server() as d:
        chunked = get_line(PPROF + "symbol", "Transfer-Encoding: chunked", "Connection: close", method="POST")
        equal(status_of(d.raw(chunked + b"3\r\n0x1\r\n4;x=y\r\n+0x2\r\n0\r\nTrailer: x\r\n\r\n")), 200)
        with d.connect() as s:
            s.sendall(get_line(PPROF + "symbol", "Content-Length: 3", "Expect: 100-continue", "Connection: close",
                               method="POST"))
            equal(s.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            s.sendall(b"0x1")
            equal(status_of(receive_all(s)), 200)


@test
def what_two_readers_could_read_differently_is_refused():
    with server() as d:
        P = PPROF + "symbol"
        for data in (b"JUNK\r\n\r\n", get_line(P, "Content-Length: 1", "Content-Length: 2", method="POST"),
                     get_line(P, "Content-Length: 1", "Transfer-Encoding: chunked", method="POST"),
                     get_line(P, "Content-Length: +1", method="POST"), get_line(P, "Content-Length : 1", method="POST"),
                     get_line(P, "A: b", " folded: c"), get_line(P, "Host: a", "Host: b"),
                     get_line(P, "A: \0"), get_line("debug/pprof/"), get_line(P, version="1.x"),
                     get_line(P, "A: b\rContent-Length: 1"), get_line("http://a\rb" + P),
                     get_line(P, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", method="POST") + b"0\r\n\r\n",
                     *(get_line(P, "Transfer-Encoding: chunked", method="POST") + size + b"\r\n0x1\r\n0\r\n\r\n"
                       for size in (b"zz", b"0x3", b"3x", b"3;a\rb", b"-3", b" 3"))):
            data = d.raw(data)
            equal(status_of(data), 400, repr(data))
            contains(data, b"nosniff")
            contains(data, b"Content-Type: text/plain; charset=utf-8")
        equal(status_of(d.raw(get_line(P, version="2.0"))), 505)
        equal(status_of(d.raw(get_line(P, "Transfer-Encoding: gzip", method="POST"))), 501)
        equal(d.get(PPROF + "cmdline").status, 200)


@test
def cmdline_is_argv_joined_by_nuls_with_secrets_replaced():
    with server("--secret", "s3cret", "--redact", "secret", "--secret", "again", "--token-file", "") as d:
        words = d.get(PPROF + "cmdline?debug=1").body.split(b"\0")
        equal(words[-8:], [b"--secret", b"REDACTED", b"--redact", b"secret", b"--secret", b"REDACTED",
                           b"--token-file", b""])


@test
def the_index_lists_what_is_served_and_how_stacks_are_walked():
    with server() as d:
        page = d.get(PPROF + "?debug=1").text
        rows = re.findall(r"<tr><td>(\d+)</td><td><a href='([^']*)\?debug=1'>([^<]*)</a></td></tr>", page)
        kinds = kinds_of_profile()
        need({"allocs", "cmdline", "goroutine", "heap", "profile", "threadcreate"} <= set(kinds), kinds)
        equal([r[2] for r in rows], kinds)
        contains(page, "<li>unwinder: ")
        links = re.findall(r'<a href="([^"]+)">', page)  # of what Go has no row for
        need(len(links) > 3, links)
        for link in links:
            equal(d.get(PPROF + html.unescape(link).replace("seconds=5", "seconds=1")).status, 200, link)
        for name in set(kinds) - {"profile", "trace"}:
            equal(d.get(PPROF + name + "?debug=1").headers["content-type"], TEXT)


@test
def index_and_cmdline_answer_within_100_ms_while_the_daemons_own_loop_is_blocked():
    with server("--burn") as d:
        equal(d.command("block 5"), "0")
        times = []
        for i in range(20):
            begin = time.monotonic()
            equal(d.get(PPROF + ("cmdline" if i % 2 else "")).status, 200)
            times.append(time.monotonic() - begin)
        need(min(times) < 0.1, times)  # the others may have waited for a processor


main()
