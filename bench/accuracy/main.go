// The work of ../cpu_accuracy.c as a Go program under Go's own profiler, for comparison.
//
//	accuracy SEED PROFILE
//
// Prints "LABEL SECONDS" for each kind of thread and leaves the profile in a file;
// cpu_accuracy_go makes the figures of both.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	part  = 8 * time.Second / 130
	short = 4 * time.Millisecond
)

var (
	labels = []string{"burnA", "burnB", "burnC", "burnD", "burnBursts", "burnShort", "burnLate"}
	truth  [7]time.Duration
	lock   sync.Mutex
	seed   uint64
	sink   uint32
)

func draw() uint64 {
	seed = seed*6364136223846793005 + 1442695040888963407
	return seed >> 33
}

func about(d time.Duration) time.Duration {
	return d + time.Duration(int64(draw()%2001)-1000)*d/10000
}

// The calling thread's CPU time.
func clock() time.Duration {
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

func burn(label int, d time.Duration) {
	begin := clock()
	for clock()-begin < d {
		for i := uint32(0); i < 20000; i++ {
			sink = sink*31 + i
		}
	}
	lock.Lock()
	truth[label] += clock() - begin
	lock.Unlock()
}

//go:noinline
func burnA(d time.Duration) { burn(0, d) }

//go:noinline
func burnB(d time.Duration) { burn(1, d) }

//go:noinline
func burnC(d time.Duration) { burn(2, d) }

//go:noinline
func burnD(d time.Duration) { burn(3, d) }

//go:noinline
func burnBursts(d time.Duration) {
	for used := time.Duration(0); used < d; used += time.Millisecond {
		burn(4, time.Millisecond)
		time.Sleep(7 * time.Millisecond)
	}
}

//go:noinline
func burnShort(d time.Duration) { burn(5, d) }

//go:noinline
func burnLate(d time.Duration) { burn(6, d) }

// A goroutine with a thread of its own, which ends with it.
func thread(wait *sync.WaitGroup, f func(time.Duration), d time.Duration) {
	wait.Add(1)
	go func() {
		defer wait.Done()
		runtime.LockOSThread()
		f(d)
	}()
}

func main() {
	n, _ := strconv.ParseUint(os.Args[1], 10, 64)
	seed = n*7919 + 1
	draw()
	out, err := os.Create(os.Args[2])
	if err == nil {
		err = pprof.StartCPUProfile(out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var long sync.WaitGroup
	thread(&long, burnA, about(50*part))
	thread(&long, burnB, about(30*part))
	thread(&long, burnC, about(15*part))
	thread(&long, burnD, about(5*part))
	thread(&long, burnBursts, about(10*part))
	shorts := about(10 * part)
	for i, used := 0, time.Duration(0); used < shorts; i++ {
		if i == 60 {
			thread(&long, burnLate, about(10*part))
		}
		one := about(short)
		var alone sync.WaitGroup
		thread(&alone, burnShort, one)
		alone.Wait()
		used += one
	}
	long.Wait()
	pprof.StopCPUProfile()
	out.Close()
	for i, label := range labels {
		fmt.Println(label, truth[i].Seconds())
	}
}
