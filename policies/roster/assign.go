package roster

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/open-multi-agent/oma/spec"
)

// Task is what assignment knows of a task.
type Task struct {
	Subject   string
	Assignee  string // empty: it is to be chosen
	Requires  *spec.Requires
	DependsOn []int // places of tasks. There is no circle
}

// The strategies.
const (
	DependencyFirst = "dependency-first"
	RoundRobin      = "round-robin"
	LeastBusy       = "least-busy"
	CapabilityMatch = "capability-match"
	Composite       = "composite"
)

// Options say how agents are chosen. The zero value: dependency-first.
type Options struct {
	Strategy string
	Weights  *spec.Weights // nil: 0.7 and 0.3
}

// Assignment is who does a task, and why. Without an Agent nobody can, or the one that is named cannot: Reasons has why.
type Assignment struct {
	Agent, Why string
	Reasons    []string
}

// Assign chooses an agent for each task that names none, and never one that cannot do it (S4). Loads are those of the plan:
// each task that was given counts one.
func Assign(o Options, tasks []Task, agents []Agent) []Assignment {
	s := &assigning{o: o, tasks: tasks, agents: profiles(agents), load: make([]int, len(agents)), out: make([]Assignment, len(tasks))}
	if s.o.Strategy == "" {
		s.o.Strategy = DependencyFirst
	}
	if s.o.Weights == nil {
		s.o.Weights = &spec.Weights{Fit: 0.7, Load: 0.3}
	}
	order := s.open()
	if o := s.o.Strategy; len(order) > 0 && (o == DependencyFirst || o == Composite) {
		n := dependants(tasks)
		slices.SortStableFunc(order, func(a, b int) int { return n[b] - n[a] })
	}
	for _, i := range order {
		s.choose(i)
	}
	return s.out
}

type assigning struct {
	o      Options
	tasks  []Task
	agents []profile
	load   []int // by agent: tasks that were chosen for it
	next   int   // whose turn it is
	out    []Assignment
}

// open gives the tasks that are to be chosen for, and holds those that name an agent against what it has.
func (s *assigning) open() (order []int) {
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.Assignee == "" {
			order = append(order, i)
			continue
		}
		if k := slices.IndexFunc(s.agents, func(a profile) bool { return a.Name == t.Assignee }); k >= 0 {
			s.out[i] = Assignment{Agent: t.Assignee, Reasons: Lacks(s.agents[k].Agent, t.Requires)}
		}
	}
	return order
}

func (s *assigning) choose(i int) {
	var can []int
	var reasons []string
	for k := range s.agents {
		if lacks := Lacks(s.agents[k].Agent, s.tasks[i].Requires); lacks == nil {
			can = append(can, k)
		} else {
			for _, why := range lacks {
				reasons = append(reasons, s.agents[k].Name+": "+why)
			}
		}
	}
	if can == nil {
		s.out[i] = Assignment{Reasons: reasons}
		return
	}
	k, why := s.pick(i, can)
	s.load[k]++
	s.out[i] = Assignment{Agent: s.agents[k].Name, Why: why}
}

// pick chooses among those that can.
func (s *assigning) pick(i int, can []int) (agent int, why string) {
	switch s.o.Strategy {
	case LeastBusy:
		k := slices.MinFunc(can, func(a, b int) int { return s.load[a] - s.load[b] })
		return k, fmt.Sprintf("%s: %d tasks so far", LeastBusy, s.load[k])
	case CapabilityMatch:
		if k, score := s.fittest(i, can); score > 0 {
			return k, fmt.Sprintf("%s: fit %.2f", CapabilityMatch, score)
		}
		return s.turn(can), CapabilityMatch + ": nothing fits, so in turn"
	case Composite:
		return s.composite(i, can)
	}
	return s.turn(can), s.o.Strategy
}

// turn gives the next of those that can, in the order of the team.
func (s *assigning) turn(can []int) int {
	at := slices.IndexFunc(can, func(k int) bool { return k >= s.next })
	k := can[max(at, 0)] // past the last it begins again
	s.next = (k + 1) % len(s.agents)
	return k
}

// fittest gives the best fit; of equals the first in the team.
func (s *assigning) fittest(i int, can []int) (best int, score float64) {
	subject := subjectOf(s.tasks[i].Subject)
	best = can[0]
	for _, k := range can {
		if got := subject.score(&s.agents[k]); got > score {
			best, score = k, got
		}
	}
	return best, score
}

// composite weighs fit against load; of equals the first by name.
func (s *assigning) composite(i int, can []int) (int, string) {
	subject, most := subjectOf(s.tasks[i].Subject), max(slices.Max(s.load), 1)
	best, high := -1, 0.0
	for _, k := range can {
		got := s.o.Weights.Fit*subject.score(&s.agents[k]) + s.o.Weights.Load*(1-float64(s.load[k])/float64(most))
		if best < 0 || got > high || got == high && s.agents[k].Name < s.agents[best].Name {
			best, high = k, got
		}
	}
	return best, fmt.Sprintf("%s: %.2f", Composite, high)
}

// dependants counts for each task those that wait for it, directly or not. It takes a bit for each pair: some 50 MB for the
// 20,000 tasks that a team may have.
func dependants(tasks []Task) []int {
	feeds, waits := make([][]int, len(tasks)), make([]int, len(tasks))
	for i := range tasks {
		waits[i] = len(tasks[i].DependsOn)
		for _, d := range tasks[i].DependsOn {
			feeds[d] = append(feeds[d], i)
		}
	}
	order := make([]int, 0, len(tasks))
	for i, n := range waits {
		if n == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, n := range feeds[order[at]] {
			if waits[n]--; waits[n] == 0 {
				order = append(order, n)
			}
		}
	}
	size := (len(tasks) + 63) / 64
	below, count := make([][]uint64, len(tasks)), make([]int, len(tasks))
	for _, i := range slices.Backward(order) { // what waits for a task comes before it
		set := make([]uint64, size)
		for _, n := range feeds[i] {
			set[n/64] |= 1 << (n % 64)
			for w, word := range below[n] {
				set[w] |= word
			}
		}
		for _, word := range set {
			count[i] += bits.OnesCount64(word)
		}
		below[i] = set
	}
	return count
}
