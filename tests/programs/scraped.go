// scraped.go - what a scraper makes of one path's answers, in their order, with the library that go tool pprof and
// the scrapers read profiles with.  For tests/examples/continuous_scrape.t.
//
// Each file is parsed and checked.  Of a cumulative kind the differences from file to file are taken: none of its
// counts may be below 0, which is what a stack looks like that fell, vanished, or came back under other addresses or
// names.  Those differences merged must equal the difference of the last file and the first, sample by sample.  Of
// the other kinds all files are merged: the sum must be that of the files.
//
// Why not the differences' totals alone: one stack's loss is another's gain.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

var cumulative = map[string]bool{"alloc_objects": true, "alloc_space": true, "contentions": true, "delay": true}

func no(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func read(path string) *profile.Profile {
	data, err := os.ReadFile(path)
	no(err)
	p, err := profile.ParseData(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		no(fmt.Errorf("%s: %v", path, err))
	}
	return p
}

func merged(all ...*profile.Profile) *profile.Profile {
	p, err := profile.Merge(all)
	no(err)
	return p
}

func difference(after, before *profile.Profile) *profile.Profile {
	less := before.Copy()
	less.Scale(-1)
	return merged(after.Copy(), less)
}

// name of a stack with its labels, which no two samples of a profile share: Merge has put them together.
func name(s *profile.Sample) string {
	var b strings.Builder
	for _, at := range s.Location {
		if m := at.Mapping; m != nil {
			fmt.Fprintf(&b, "%s+%#x", m.File, at.Address-m.Start)
		}
		for _, line := range at.Line {
			fmt.Fprintf(&b, " %s %s:%d", line.Function.Name, line.Function.Filename, line.Line)
		}
		b.WriteString("; ")
	}
	fmt.Fprint(&b, s.Label, s.NumLabel)
	return b.String()
}

// lines of a profile: each sample's stack and values, sorted.
func lines(p *profile.Profile) string {
	var all []string
	for _, s := range p.Sample {
		all = append(all, fmt.Sprint(name(s), s.Value))
	}
	sort.Strings(all)
	return strings.Join(all, "\n")
}

func sums(all ...*profile.Profile) []int64 {
	total := make([]int64, len(all[0].SampleType))
	for _, p := range all {
		for _, s := range p.Sample {
			for i, v := range s.Value {
				total[i] += v
			}
		}
	}
	return total
}

func grown(path string, delta *profile.Profile) {
	for _, s := range delta.Sample {
		for i, t := range delta.SampleType {
			if cumulative[t.Type] && s.Value[i] < 0 {
				no(fmt.Errorf("%s: %s fell by %d: %s", path, t.Type, -s.Value[i], name(s)))
			}
		}
	}
}

func main() {
	var all []*profile.Profile
	for _, path := range os.Args[1:] {
		all = append(all, read(path))
	}
	first, last := all[0], all[len(all)-1]
	if !cumulative[first.SampleType[0].Type] {
		if a, b := sums(merged(all...)), sums(all...); fmt.Sprint(a) != fmt.Sprint(b) {
			no(fmt.Errorf("merged they are %v, and one by one %v", a, b))
		}
		fmt.Println(sums(all...)[0])
		return
	}
	var deltas []*profile.Profile
	for i := 1; i < len(all); i++ {
		delta := difference(all[i], all[i-1])
		grown(os.Args[i+1], delta)
		deltas = append(deltas, delta)
	}
	inner, outer := merged(deltas...), difference(last, first)
	if lines(inner) != lines(outer) {
		no(fmt.Errorf("the differences merged:\n%s\n\nthe outer one:\n%s", lines(inner), lines(outer)))
	}
	fmt.Println(sums(outer)[0])
}
