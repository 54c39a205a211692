package snippets

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const unitFile = "deploy/systemd/sandboxd.service"

// unit is a unit file: section.key to its value.
type unit map[string]string

// parseUnit reads a unit file. Comments and empty lines are skipped; a key that
// is there twice is a mistake here.
func parseUnit(t *testing.T, text string) unit {
	t.Helper()
	u, section := unit{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			key, value, ok := strings.Cut(line, "=")
			key = section + "." + key
			if _, twice := u[key]; !ok || twice || section == "" {
				t.Fatalf("%q: not a key, twice, or in no section", line)
			}
			u[key] = value
		}
	}
	return u
}

// TestUnitIsHardened holds the unit to what docs/operate.md says of it.
func TestUnitIsHardened(t *testing.T) {
	u := parseUnit(t, read(t, unitFile))
	for key, want := range map[string]string{
		"User": "sandboxd", "StateDirectory": "sandboxd", "CacheDirectory": "sandboxd", "UMask": "0077",
		"StateDirectoryMode": "0700", "CacheDirectoryMode": "0700", "KillMode": "mixed",
		"ProtectSystem": "strict", "ProtectHome": "yes", "PrivateTmp": "yes", "PrivateDevices": "yes", "ProtectProc": "invisible",
		"ProtectKernelLogs": "yes", "ProtectKernelModules": "yes", "ProtectKernelTunables": "yes", "ProtectControlGroups": "yes",
		"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "", "RestrictNamespaces": "yes",
		"RestrictSUIDSGID": "yes", "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX", "SystemCallFilter": "@system-service",
		"SystemCallArchitectures": "native",
	} {
		if got, ok := u["Service."+key]; !ok || got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	stop, err := strconv.Atoi(strings.TrimSuffix(u["Service.TimeoutStopSec"], "s"))
	if err != nil || stop <= 30 {
		t.Errorf("TimeoutStopSec=%s: want more than the default grace of 30s", u["Service.TimeoutStopSec"])
	}
	user := strings.Fields(read(t, "deploy/systemd/sandboxd.sysusers.conf"))
	if i := slices.Index(user, "u"); i < 0 || user[i+1] != u["Service.User"] {
		t.Errorf("sysusers makes no user %s: %q", u["Service.User"], user)
	}
}

// TestUnitIsAccepted asks systemd itself.
func TestUnitIsAccepted(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze")
	}
	file := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	text := strings.ReplaceAll(read(t, unitFile), "/usr/local/bin/sandboxd", program.Path)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "sandboxd.service") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	// From 0, nothing is left open, to 100; a bare unit has 92 to 96.
	out, err = exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=25", file).CombinedOutput()
	if strings.Contains(string(out), "unrecognized option") {
		t.Skip("this systemd-analyze cannot judge a file")
	}
	if err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}

// TestUnitRuns starts, reloads and stops the daemon with the unit's own lines.
func TestUnitRuns(t *testing.T) {
	if _, err := os.Stat("/bin/kill"); err != nil {
		t.Skip("no /bin/kill")
	}
	u := parseUnit(t, read(t, unitFile))
	start := strings.Fields(u["Service.ExecStart"])
	if start[0] != "/usr/local/bin/sandboxd" {
		t.Fatalf("starts %s", start[0])
	}
	p := run(t, program.Path, start[1:], "/var/lib/sandboxd", "/var/cache/sandboxd")
	reload := exec.Command("sh", "-c", u["Service.ExecReload"])
	reload.Env = append(os.Environ(), "MAINPID="+strconv.Itoa(p.cmd.Process.Pid))
	if out, err := reload.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.until(t, "packages are taken")
	p.stop(t, syscall.SIGTERM)
}
