package report

import (
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"time"
)

// Machine is where and with what a run was made.
type Machine struct {
	CPU, Kernel, Memory string
	Cores, GOMAXPROCS   int
	GOGC                int    // of this process: client and all that runs in it
	Load                string // when the run began
	Time                time.Time
	Versions            []Version
}

// Version is one program or library that was measured.
type Version struct{ Name, Version string }

// NewMachine looks at the machine.
func NewMachine(gogc int) Machine {
	m := Machine{
		CPU: "unknown", Kernel: "unknown", Memory: "unknown", Load: "unknown",
		Cores: goruntime.NumCPU(), GOMAXPROCS: goruntime.GOMAXPROCS(0), GOGC: gogc, Time: time.Now().UTC(),
		Versions: []Version{{"Go", strings.TrimPrefix(goruntime.Version(), "go")}},
	}
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = field(string(b), "model name", m.CPU)
	}
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		m.Memory = field(string(b), "MemTotal", m.Memory)
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.TrimSpace(string(b))
	}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = goruntime.GOOS + " " + strings.TrimSpace(string(b)) + ", " + goruntime.GOARCH
	}
	return m
}

// field returns the value of a line "name: value", or what else is said.
func field(text, name, none string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return none
}

// Says adds what a program says of its version, or that it is not there.
func (m *Machine) Says(name, program string, args ...string) {
	out, err := exec.Command(program, args...).Output()
	version, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil {
		version = "not here"
	}
	m.Versions = append(m.Versions, Version{name, version})
}

func (m *Machine) String() string {
	return fmt.Sprintf("%s, %d processors, %s of memory, %s", m.CPU, m.Cores, m.Memory, m.Kernel)
}
