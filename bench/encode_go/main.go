// Go's heap profile of 100,000 stacks of 30 frames, for comparison with ../encode.c.
//
//	encode go [TIMES]
//
// 17 levels make one of two calls, 13 have no choice.  What WriteHeapProfile takes
// includes collecting the records; it cannot be had without.  With TIMES it is written so often,
// for counting instructions.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"syscall"
)

const (
	stacks = 100000
	ways   = 17
	rounds = 3
	levels = 27 // with those of main and below it, 30 frames
)

var (
	held [][]byte
	sink *[]byte
)

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

//go:noinline
func walk(bits uint, level int) {
	switch {
	case level == levels:
		held = append(held, make([]byte, 64))
	case level < ways && bits>>level&1 == 1:
		walk(bits, level+1)
	default:
		walk(bits, level+1)
	}
}

func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

func encode() (float64, counter) {
	var out counter
	begin := cpu()
	if err := pprof.WriteHeapProfile(&out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return cpu() - begin, out
}

func main() {
	runtime.MemProfileRate = 1
	held = make([][]byte, 0, stacks)
	for i := uint(0); i < stacks; i++ {
		walk(i, 0)
	}
	runtime.GC()
	runtime.GC()
	if n, _ := runtime.MemProfile(nil, true); n < stacks {
		fmt.Fprintln(os.Stderr, "only", n, "stacks")
		os.Exit(1)
	}
	if len(os.Args) > 2 {
		times, err := strconv.Atoi(os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for ; times > 0; times-- {
			encode()
		}
		return
	}
	first, size := encode()
	taken := []float64{}
	for i := 0; i < rounds; i++ {
		ms, _ := encode()
		taken = append(taken, ms)
	}
	sort.Float64s(taken)
	fmt.Printf("encode_100k_ms %.3f ms\n# Go: %d KiB; the first one took %.1f ms\n", taken[rounds/2], size/1024, first)
	runtime.KeepAlive(held)
}
