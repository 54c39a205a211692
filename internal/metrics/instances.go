package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// inUse is the state of an instance that serves a call.
const inUse = "in_use"

// instances collects how many instances the packages have. Their numbers are
// kept by the engine's names of the packages, and labelled at a scrape: a package
// may be dropped while its last calls still run.
type instances struct {
	metrics *Metrics
	desc    *prometheus.Desc

	mu    sync.Mutex
	inUse map[string]int
}

func newInstances() *instances {
	return &instances{
		desc:  prometheus.NewDesc(namespace+"_instances", "Instances by package and state.", []string{"package", "state"}, nil),
		inUse: map[string]int{},
	}
}

func (i *instances) acquire(pkg string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inUse[pkg]++
}

func (i *instances) release(pkg string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inUse[pkg]--; i.inUse[pkg] == 0 {
		delete(i.inUse, pkg)
	}
}

// Describe tells the registry what Collect sends.
func (i *instances) Describe(out chan<- *prometheus.Desc) { out <- i.desc }

// Collect sends the numbers of each package that is served, 0 included, and of
// the others together where there are any.
func (i *instances) Collect(out chan<- prometheus.Metric) {
	for pkg, n := range i.labelled() {
		out <- prometheus.MustNewConstMetric(i.desc, prometheus.GaugeValue, float64(n), pkg, inUse)
	}
}

func (i *instances) labelled() map[string]int {
	byLabel := map[string]int{}
	i.metrics.mu.RLock()
	defer i.metrics.mu.RUnlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	for pkg := range i.metrics.names.packages {
		byLabel[pkg] = 0
	}
	for pkg, n := range i.inUse {
		byLabel[i.metrics.names.pkg(pkg)] += n
	}
	return byLabel
}
