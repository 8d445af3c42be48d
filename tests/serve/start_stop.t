#!/usr/bin/env python3
"""The life of the server: what it says, where it listens, and that nothing of it is
left when it is off."""
import os
import re
import socket
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from serving import *

own_network()


def mine(pid):
    """What the library may have left: its threads and every descriptor above stdio."""
    return own_threads(pid), {n: t for n, t in descriptors(pid).items() if n > 2}


@test
def off_is_off_nothing_is_left_after_fifty_rounds():
    with server(start=False) as d:
        before = mine(d.pid)
        equal(d.command("toggle 1"), "0")
        size = rss(d.pid)
        equal(d.command("toggle 50"), "0")
        equal(mine(d.pid), before)
        equal(os.path.exists(d.port_file), False, "port file")
        need(not grew_too_much(d.pid, size, 2 << 20), "RSS grew by %d bytes" % (rss(d.pid) - size))


@test
def a_hundred_profiles_with_lines_leave_malloc_and_memory_as_they_were():
    with server("--heap-rate", "1") as d:
        def ask(n):
            for i in range(n):
                path = ("heap", "heap?debug=1", "heap?format=top", "allocs")[i % 4]
                equal(d.get(PPROF + path).status, 200)
            poll(lambda: is_idle(d), "the end of the requests")

        equal(d.command("alloc 1000000"), "0")  # kept; from here on everything is a sample
        for _ in range(20):
            contains(d.command("load /nowhere/plugin.so"), "cannot open")
        contains(d.get(PPROF + "heap?debug=1").text, "profiled_daemon.c:")
        equal(d.command("rate 0"), "0")  # the block that is asked for below is malloc's
        ask(8)
        used, mapped, _ = [int(n) for n in d.command("malloc").split()]
        size = rss(d.pid)
        if not used:
            raise Skip("another malloc, which has no mallinfo2()")
        ask(100)
        after = [int(n) for n in d.command("malloc 1").split()]
        equal(after[1], mapped, "mappings of malloc's own")
        equal(after[2], 1, "whether a block of 160 KiB is one")
        need(after[0] - used < 64 << 10, "%d bytes more in use" % (after[0] - used))
        need(not grew_too_much(d.pid, size, 5 << 20), "RSS grew by %d bytes" % (rss(d.pid) - size))


@test
def one_line_after_the_bind_names_port_and_url():
    with server() as d:
        equal(d.output().count("\n"), 1)
        contains(d.output(), "info: starting profiling server on port %d url=%s\n" % (d.port, d.url))
        equal(d.command("running"), "1 " + d.url)
        equal(d.command("start").split()[0], "-114", "a second start")
        equal(d.get(PPROF + "cmdline").status, 200)


@test
def a_rate_that_was_set_before_a_start_stays_also_where_that_fails():
    def heap_rate():
        equal(d.command("start"), "0")
        d.wait_port()
        return re.search(r"^heap-profile-rate[= ](\S+)", d.get(PPROF + "rates").text, re.M).group(1)

    with server(start=False) as d:
        equal(d.command("rate 4096"), "0")
        os.mkdir(d.port_file)
        need(d.command("start").startswith("-"), "the port file is a folder")
        os.rmdir(d.port_file)
        equal(heap_rate(), "4096")
        equal(d.command("stop"), "0")
        equal(heap_rate(), "524288")
    with server("--address", "127.0.0.1:%d" % free_port(), start=False) as d:
        equal(d.command("rate 4096"), "0")
        d.send("daemonize")
        d.reply()
        equal(d.command("start"), "0")
        with open(d.port_file) as f:
            d.port = int(f.read().rpartition(":")[2])
        contains(d.get(PPROF + "rates").text, "heap-profile-rate=4096\n")
        equal(d.command("stop"), "0")
    with server("--heap-rate", "1024", start=False) as d:
        equal(d.command("rate 4096"), "0")
        equal(heap_rate(), "1024")


@test
def a_port_file_that_a_successor_has_replaced_stays():
    with server() as d:
        with open(d.port_file) as f, open(d.port_file + ".new", "w") as new:
            new.write(f.read())  # on a fixed port both say the same
        os.rename(d.port_file + ".new", d.port_file)
        equal(d.command("stop"), "0")
        need(os.path.exists(d.port_file), "the successor's port file is gone")
        os.unlink(d.port_file)


@test
def the_port_file_says_the_address_and_goes_at_the_end():
    with server() as d:
        with open(d.port_file) as f:
            equal(f.read(), "127.0.0.1:%d\n" % d.port)
        equal(os.listdir(d.dir), ["log", "port"] if os.listdir(d.dir)[0] == "log" else ["port", "log"])
        equal(d.command("stop"), "0")
        equal(os.path.exists(d.port_file), False)
        equal(d.command("running"), "0")
    with server() as d:
        with open(d.port_file, "w") as f:
            f.write("127.0.0.1:1\n")
        equal(d.command("stop"), "0")
        equal(os.path.exists(d.port_file), True, "a successor's file")


@test
def the_port_file_is_made_beside_its_place_by_a_name_that_nobody_can_have_made_before():
    with server(start=False) as d:
        foreseen = "%s.%d" % (d.port_file, d.pid)
        with open(foreseen, "w") as f:
            f.write("somebody's\n")
        equal(d.command("start"), "0")
        d.wait_port()
        with open(foreseen) as f:
            equal(f.read(), "somebody's\n")
        equal(sorted(os.listdir(d.dir)), ["log", "port", os.path.basename(foreseen)])


@test
def a_port_file_that_is_no_file_is_written_to_and_stays():
    with server(start=False) as d:
        os.mkfifo(d.port_file)
        reader = os.open(d.port_file, os.O_RDONLY | os.O_NONBLOCK)
        try:
            equal(d.command("start"), "0")
            contains(os.read(reader, 100).decode(), "127.0.0.1:")
            equal(d.command("stop"), "0")
            need(stat.S_ISFIFO(os.lstat(d.port_file).st_mode))
        finally:
            os.close(reader)


@test
def an_unwritable_port_file_stops_the_start_and_leaves_nothing():
    with server("--port-file", "/nonexistent/port", start=False) as d:
        before = mine(d.pid)
        answer = d.command("start")
        contains(answer, "cannot write the port file '/nonexistent/port': No such file or directory")
        equal(mine(d.pid), before)


@test
def a_busy_port_is_told_with_its_address_and_harms_nothing():
    with server() as d, server("--address", "127.0.0.1:%d" % d.port, start=False) as e:
        before = mine(e.pid)
        answer = e.command("start")
        need(answer.startswith("-98 cannot serve profiles on 127.0.0.1:%d: Address already in use" % d.port), answer)
        equal(mine(e.pid), before)


@test
def a_bad_address_is_told_with_the_way_out():
    with server("--address", "6060", start=False) as d:
        answer = d.command("start")
        contains(answer, "-22 cannot serve profiles on '6060': ")
        contains(answer, "127.0.0.1:6060")


@test
def the_debug_socket_has_mode_0600_and_asks_for_neither_host_nor_token():
    with tempdir() as t:
        path, token = os.path.join(t, "sock"), os.path.join(t, "token")
        with open(token, "w") as f:
            f.write("s3cret\n")
        os.chmod(token, 0o600)
        with server("--socket", path, "--token-file", token, "--address", "0", wait=False) as d:
            equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            contains(d.output(), "starting profiling server on unix:" + path)
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            s.sendall(get_line(PPROF + "heap?debug=1", "Host: evil.example", "Connection: close"))
            equal(status_of(receive_all(s)), 200)
            s.close()
            equal(d.command("stop"), "0")
            equal(os.path.exists(path), False)


@test
def tcp_and_debug_socket_serve_side_by_side():
    with tempdir() as t:
        path = os.path.join(t, "sock")
        with server("--socket", path) as d:
            equal(d.get(PPROF + "cmdline").status, 200)
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            s.sendall(get_line(PPROF + "cmdline", "Connection: close"))
            equal(status_of(receive_all(s)), 200)
            s.close()
            contains(d.output(), "serving profiles on the debug socket")


@test
def an_address_for_everybody_without_a_token_is_one_warning():
    need_own_network()
    with server("--address", "0.0.0.0:0") as d:
        equal(d.output().count("warning: "), 1)
        contains(d.output(), "--profiling-token-file")


@test
def what_a_failed_move_cannot_have_back_is_told_and_tried_again_by_the_next_change():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with server("--address", "127.0.0.1:%d" % port) as d:
        equal(d.command("nobind 1"), "0")
        # Either address wants the other's place, so the first had to go before the second could be tried.
        contains(d.command("change 0.0.0.0:%d" % port), "cannot serve profiles on")
        contains(d.output(), "error: the address of before cannot be had again: ")
        contains(d.command("change 127.0.0.1:%d" % port), "Permission denied")
        equal(d.command("nobind 0"), "0")
        equal(d.command("change 127.0.0.1:%d" % port), "0")
        equal(d.get(PPROF + "cmdline").status, 200)
        equal(d.command("stop"), "0")


@test
def a_change_to_no_address_at_all_is_refused_as_a_start_is():
    with server() as d:
        contains(d.command("change 0"), "-22 cannot serve profiles on nothing: neither an address nor a debug socket is given")
        equal(d.get(PPROF + "cmdline").status, 200)
        equal(d.command("stop"), "0")


@test
def another_port_file_is_written_without_another_address_and_the_old_one_goes_if_it_is_ours():
    with server() as d:
        other, address = d.dir + "/other", "127.0.0.1:0"
        equal(d.command("change %s %s" % (address, other)), "0")
        with open(other) as f:
            equal(f.read(), "127.0.0.1:%d\n" % d.port)
        need(not os.path.exists(d.port_file), "the old one")
        with open(other, "w") as f:
            f.write("127.0.0.1:1\n")
        equal(d.command("change %s %s" % (address, d.port_file)), "0")
        need(os.path.exists(d.port_file) and os.path.exists(other), "a successor's file")
        with open(d.port_file, "w") as f:
            f.write("127.0.0.1:1\n")
        equal(d.command("change 127.0.0.2:0 %s" % other), "0")
        need(os.path.exists(d.port_file), "a successor's file, after a move")
        equal(d.command("stop"), "0")
        need(not os.path.exists(other), "ours, at the end")


@test
def threads_are_named_and_block_every_signal():
    with server() as d:
        with d.connect() as s:
            s.sendall(get_line(PPROF + "profile?seconds=3600"))
            poll(lambda: {"component-http", "component-job", "component-cpu"} <= set(own_threads(d.pid)), "threads")
            equal(len(threads(d.pid)), len(own_threads(d.pid)) + 1, "threads without our name")
            for tid, name in threads(d.pid).items():
                if tid == d.pid:
                    continue
                with open("/proc/%d/task/%d/status" % (d.pid, tid)) as f:
                    blocked = next(int(line.split()[1], 16) for line in f if line.startswith("SigBlk"))
                for signal_number in (1, 2, 10, 12, 13, 14, 15, 17, 27):
                    need(blocked >> (signal_number - 1) & 1, "%s does not block signal %d" % (name, signal_number))


@test
def what_the_server_allocates_is_not_in_the_daemons_heap_profile():
    with server("--heap-rate", "1") as d:
        for _ in range(20):
            equal(d.get(PPROF + "heap").status, 200)
            equal(d.get(PPROF + "symbol?0x1").status, 200)
        d.get(PPROF + "profile?seconds=1")
        equal(d.command("alloc 1000000"), "0")
        equal(d.command("alloc 2000000"), "0")
        text = d.get(PPROF + "heap?debug=1").text
        contains(text, "do_alloc+")
        for name in ("httpd_", "event_", "evbuffer_", "job_", "our_thread", "begin+"):
            need(name not in text, "%s is in:\n%s" % (name, text))


def answers(d):
    try:
        return d.get(PPROF + "cmdline").status == 200
    except OSError:
        return False


@test
def a_daemon_that_closes_all_descriptors_and_reuses_the_numbers_keeps_the_server_and_all_of_its_own():
    with server() as d:
        with d.connect() as s:
            s.sendall(get_line(PPROF + "profile?seconds=3600"))
            poll(lambda: not is_idle(d), "a window")
            equal(d.command("closefrom"), "0")
            # Its own files now have the numbers that were ours: none may be touched.
            equal(d.command("exhaust 900")[:1].isdigit(), True)
            # The open window looks into /proc all the while; that is no file of the daemon's.
            def own(pid=d.pid):
                return {n for n, t in descriptors(pid).items() if n > 2 and t == "/dev/null"}

            before = own()
            need(len(before) >= 900, before)
            poll(lambda: answers(d), "the server, again at its address")
            r, child, running = d.command("fork").split()
            equal((r, running), ("0", "0"))
            equal(own(int(child)), before, "what a child has of them")
            equal(d.command("stop"), "0")
            equal(own(), before)
            equal(d.command("exhaust -1"), "0")
        poll(lambda: is_idle(d), "the window's end")
        equal(d.command("start"), "0", "a new server")
        with open(d.port_file) as f:
            d.port = int(f.read().rpartition(":")[2])
        equal(d.get(PPROF + "cmdline").status, 200)


def fdinfo(pid, n):
    with open("/proc/%d/fdinfo/%d" % (pid, n)) as f:
        return f.read()


@test
def a_daemon_that_takes_one_number_of_ours_has_the_server_again_and_the_others_are_not_left_open():
    with server() as d:
        def numbers(kind):
            return sorted(n for n, t in descriptors(d.pid).items() if n > 2 and n not in taken and t.startswith(kind))

        def ours():
            return {k: len(numbers(k)) for k in ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "pipe:", "socket:")}

        taken = {}
        usual = {"anon_inode:[eventpoll]": 1, "anon_inode:[eventfd]": 0, "pipe:": 2, "socket:": 3}
        equal(ours(), usual, "libevent's, both ends of what wakes the loop, the listener")
        # Each of them, by a file, and by what looks like an epoll; and one of a client's connection.
        for n, kind in enumerate(("anon_inode:[eventpoll]", "pipe:", "socket:", "socket:", "socket:", "client")):
            with d.connect() if kind == "client" else open(os.devnull) as client:
                if kind == "client":
                    client.sendall(get_line(PPROF + "profile?seconds=3600"))
                    poll(lambda: not is_idle(d), "a window")
                    victim = max(numbers("socket:"))
                else:
                    victim = numbers(kind)[n - 2 if kind == "socket:" else 0]
                taken[victim] = ("takeepoll", "takeevent", "take")[n % 3]
                equal(d.command("%s %d" % (taken[victim], victim)), "0")
                poll(lambda: ours() == usual and answers(d), "the server, again at its address, after the loss of a " + kind)
            if taken[victim] == "takeevent":
                contains(fdinfo(d.pid, victim), "eventfd-count:                0\n")
            need("tfd:" not in fdinfo(d.pid, victim), "the daemon's epoll knows something of ours")
            equal(d.command("give %d" % victim), "0")
            del taken[victim]
        poll(lambda: is_idle(d), "the window's end")
        equal(d.command("stop"), "0")


@test
def no_eventfd_of_a_daemon_that_has_our_numbers_is_ever_written_to():
    with server() as d:
        numbers = [n for n in descriptors(d.pid) if n > 2]
        equal(d.command("closefrom"), "0")
        for n in numbers:
            equal(d.command("takeevent %d" % n), "0")
        # Whoever asks for something wakes the server, by the number it has known.
        equal(d.command("stop"), "0")
        for n in numbers:
            contains(fdinfo(d.pid, n), "eventfd-count:                0\n")


@test
def descriptors_are_close_on_exec_and_above_2_even_with_stdio_closed():
    with server(start=False) as d:
        equal(d.command("closestdio"), "0")
        equal(d.command("start"), "0")
        d.wait_port()
        for _ in range(3):
            equal(d.get(PPROF + "heap").status, 200)
        with d.connect() as s:
            s.sendall(get_line(PPROF + "cmdline"))
            contains(s.recv(65536), b"200 OK")
            found = descriptors(d.pid)
            need(2 not in found, "descriptor 2 is %s" % found.get(2))
            for n in found:
                if n > 2:
                    with open("/proc/%d/fdinfo/%d" % (d.pid, n)) as f:
                        flags = next(int(line.split()[1], 8) for line in f if line.startswith("flags:"))
                    need(flags & os.O_CLOEXEC, "%d (%s) survives exec" % (n, found[n]))


main()
