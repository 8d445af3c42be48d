// looked_at.go - as looked_at.c, in Go alone, so that it is linked statically.  It is to run with
// GODEBUG=asyncpreemptoff=1, as Go's own signals interrupt calls, too.
package main

import (
	"fmt"
	"os"
	"syscall"
)

var sum int

//go:noinline
func burnHere() {
	for i := 0; i < 5000000; i++ {
		sum += i
	}
	fmt.Sprint()
}

//go:noinline
func callHere() {
	burnHere()
	sum++
}

func main() {
	go func() {
		for {
			callHere()
		}
	}()
	input, _ := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err := syscall.EpollCtl(input, syscall.EPOLL_CTL_ADD, 0, &syscall.EpollEvent{Events: syscall.EPOLLIN}); err != nil {
		panic(err)
	}
	fmt.Println("started")
	interrupted := 0
	for n := 0; n <= 0; {
		var err error
		if n, err = syscall.EpollWait(input, make([]syscall.EpollEvent, 1), 1000); err == syscall.EINTR {
			interrupted++
		}
	}
	if interrupted > 0 {
		fmt.Println(interrupted, "calls were interrupted")
	} else {
		fmt.Println("fine")
	}
	os.Exit(3)
}
