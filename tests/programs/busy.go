// busy.go - as busy.c, in Go with C in it: Go calls C, which calls Go; both burn and both allocate, and Go's
// runtime stops its threads by signals, as its own profiler does.  For tests/whole/languages.t.
//
// With a name as its argument it writes its own CPU profile there.  With an address before it, the C
// library's server is started from C.
package main

/*
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef LINKED
#include <component/profiler.h>
static int start(const char *address) { return component_profiler_start(address); }
#else
static int start(const char *address) { (void)address; return -1; }
#endif

extern void goBack(int);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static unsigned long c_burn_here(unsigned long n)
{
	volatile unsigned long sum = 0;

	for (int i = 0; i < 300000; i++)
		sum += n ^ (unsigned long)i;
	return sum;
}

__attribute__((noinline)) static unsigned long c_hold_here(unsigned long n)
{
	unsigned long sum;

	pthread_mutex_lock(&lock);
	sum = c_burn_here(n);
	pthread_mutex_unlock(&lock);
	return sum;
}

__attribute__((noinline)) static void *c_keep_here(void)
{
	return memset(malloc(1000), 1, 1000);
}

__attribute__((noinline)) static void c_calls_back(int n)
{
	goBack(n);
}
*/
import "C"

import (
	"bufio"
	"bytes"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

var over int32
var sink uint64

//go:noinline
func goBurnHere(n uint64) uint64 {
	var sum uint64
	for i := uint64(0); i < 300000; i++ {
		sum += i ^ n
	}
	return sum
}

//export goBack
func goBack(n C.int) { atomic.AddUint64(&sink, goBurnHere(uint64(n))) }

type thing struct{ values [4]int }

// A SIGSEGV that is the runtime's business.
func faults(none *thing) (got interface{}) {
	defer func() { got = recover() }()
	none.values[1] = 3
	return nil
}

func inC(kept *[]unsafe.Pointer) {
	for i := 0; atomic.LoadInt32(&over) == 0; i++ {
		atomic.AddUint64(&sink, uint64(C.c_hold_here(3)))
		if i < 4000 {
			*kept = append(*kept, C.c_keep_here())
		}
		C.c_calls_back(C.int(i))
		time.Sleep(time.Millisecond)
	}
}

func inGo() {
	for atomic.LoadInt32(&over) == 0 {
		atomic.AddUint64(&sink, goBurnHere(7)+uint64(len(make([]byte, 100000))))
		if faults(nil) == nil {
			os.Exit(9)
		}
		time.Sleep(time.Millisecond)
	}
}

func main() {
	var all sync.WaitGroup
	var kept [2][]unsafe.Pointer
	var own bytes.Buffer
	args := os.Args[1:]
	if len(args) > 0 && bytes.ContainsRune([]byte(args[0]), ':') {
		address := C.CString(args[0])
		if C.start(address) < 0 {
			os.Exit(8)
		}
		C.free(unsafe.Pointer(address))
		args = args[1:]
	}
	os.Stdout.WriteString("started\n")
	in := bufio.NewReader(os.Stdin)
	in.ReadString('\n')
	if len(args) > 0 && pprof.StartCPUProfile(&own) != nil {
		os.Exit(7)
	}
	for i := 0; i < 2; i++ {
		all.Add(2)
		kept := &kept[i]
		go func() { defer all.Done(); inC(kept) }()
		go func() { defer all.Done(); inGo() }()
	}
	in.ReadString('\n')
	atomic.StoreInt32(&over, 1)
	all.Wait()
	for i := range kept {
		for _, block := range kept[i] {
			C.free(block)
		}
	}
	if len(args) > 0 {
		pprof.StopCPUProfile()
		os.WriteFile(args[0], own.Bytes(), 0600)
	}
	os.Stdout.WriteString("fine\n")
	os.Exit(3)
}
