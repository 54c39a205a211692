package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sandboxd/sandboxd/runtime"
)

// States of instances.
const (
	busy = "busy" // serves a call
	idle = "idle" // waits for one
)

// instances collects how many instances the packages have, and of which kind they
// are. All is kept by the engine's names of the packages, and labelled at a scrape: a
// package may be dropped while its last calls still run.
type instances struct {
	metrics *Metrics
	desc    *prometheus.Desc
	info    *prometheus.Desc

	mu    sync.Mutex
	busy  map[string]int
	idle  map[string]int
	kinds map[string][2]string // kind and reason
}

func newInstances() *instances {
	return &instances{
		desc: prometheus.NewDesc(namespace+"_instances", "Instances by package and state.", []string{"package", "state"}, nil),
		info: prometheus.NewDesc(namespace+"_package_image_info", "What the instances of a package are, and why they are new for each call where they are; always 1.",
			[]string{"package", "kind", "reason"}, nil),
		busy: map[string]int{}, idle: map[string]int{}, kinds: map[string][2]string{},
	}
}

func (i *instances) acquire(pkg string)           { i.add(i.busy, pkg, 1) }
func (i *instances) release(pkg string)           { i.add(i.busy, pkg, -1) }
func (i *instances) waits(pkg string, change int) { i.add(i.idle, pkg, change) }

func (i *instances) add(to map[string]int, pkg string, change int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if to[pkg] += change; to[pkg] == 0 {
		delete(to, pkg)
	}
}

// kind remembers what a package's instances are, as long as it is served.
func (i *instances) kind(pkg string, k runtime.Kind, why runtime.Reason) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kinds[pkg] = [2]string{kindLabel(k), reasonLabel(why)}
}

// forget drops what a package's instances are.
func (i *instances) forget(pkg string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.kinds, pkg)
}

// Describe tells the registry what Collect sends.
func (i *instances) Describe(out chan<- *prometheus.Desc) {
	out <- i.desc
	out <- i.info
}

// Collect sends the numbers of each package that is served, 0 included, and of
// the others together where there are any.
func (i *instances) Collect(out chan<- prometheus.Metric) {
	for state, byLabel := range map[string]map[string]int{busy: i.labelled(i.busy), idle: i.labelled(i.idle)} {
		for pkg, n := range byLabel {
			out <- prometheus.MustNewConstMetric(i.desc, prometheus.GaugeValue, float64(n), pkg, state)
		}
	}
	for pkg, k := range i.served() {
		out <- prometheus.MustNewConstMetric(i.info, prometheus.GaugeValue, 1, pkg, k[0], k[1])
	}
}

func (i *instances) labelled(numbers map[string]int) map[string]int {
	byLabel := map[string]int{}
	i.metrics.mu.RLock()
	defer i.metrics.mu.RUnlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	for pkg := range i.metrics.names.packages {
		byLabel[pkg] = 0
	}
	for pkg, n := range numbers {
		byLabel[i.metrics.names.pkg(pkg)] += n
	}
	return byLabel
}

// served returns the kinds of the packages that have a name of their own.
func (i *instances) served() map[string][2]string {
	kinds := map[string][2]string{}
	i.metrics.mu.RLock()
	defer i.metrics.mu.RUnlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	for pkg, k := range i.kinds {
		if _, ok := i.metrics.names.packages[pkg]; ok {
			kinds[pkg] = k
		}
	}
	return kinds
}
