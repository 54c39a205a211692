// Package prometheus has tests that scrape the metrics of a real engine with a
// real Prometheus. They need its programs:
//
//	go test ./internal/prometheus -prometheus /usr/bin/prometheus -promtool /usr/bin/promtool
package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	prometheusPath = flag.String("prometheus", "", "program prometheus, 2.40 or later; without it nothing is scraped")
	promtoolPath   = flag.String("promtool", "", "program promtool; without it no rules are checked")
)

const (
	deploy  = "../../deploy"
	patient = 2 * time.Minute // at most, for what a busy machine takes long for
)

// server is a running Prometheus.
type server struct {
	url  string
	exit chan error
	log  *bytes.Buffer // to be read after exit
}

// start runs a Prometheus that scrapes the target each second until the test
// ends.
func start(t *testing.T, target string, features ...string) *server {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(deploy, "prometheus", "alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: sandboxd, static_configs: [{targets: [%q]}]}]
`, rules, target)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	// Prometheus does not say which port it got, and a free one may be taken
	// before it is there.
	for range 3 {
		addr := freeAddress(t)
		s := &server{url: "http://" + addr, exit: make(chan error, 1), log: &bytes.Buffer{}}
		cmd := exec.Command(*prometheusPath, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--enable-feature="+strings.Join(features, ","))
		cmd.Stdout, cmd.Stderr = s.log, s.log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { s.exit <- cmd.Wait() }()
		if err := s.ready(); err == nil {
			t.Cleanup(func() {
				if err := errors.Join(cmd.Process.Signal(os.Interrupt), <-s.exit); err != nil {
					t.Errorf("prometheus: %v\n%s", err, s.log)
				}
			})
			return s
		} else {
			t.Log(err)
		}
		_ = cmd.Process.Kill() // it may have ended
	}
	t.Fatal("prometheus does not start")
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ready waits until the server answers.
func (s *server) ready() error {
	for until := time.Now().Add(patient); time.Now().Before(until); {
		select {
		case err := <-s.exit:
			return fmt.Errorf("prometheus ended: %w\n%s", err, s.log)
		case <-time.After(50 * time.Millisecond):
		}
		r, err := http.Get(s.url + "/-/ready")
		if err != nil {
			continue
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return nil
		}
	}
	return errors.New("prometheus is not ready")
}

// get returns the data of an answer of the API.
func (s *server) get(t *testing.T, path string, query url.Values, data any) {
	t.Helper()
	if err := s.try(t.Context(), path, query, data); err != nil {
		t.Fatal(err)
	}
}

func (s *server) try(ctx context.Context, path string, query url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	answer := struct {
		Status, Error string
		Warnings      []string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if answer.Status != "success" || len(answer.Warnings) > 0 {
		return fmt.Errorf("%s: %s%v: %s", path, answer.Error, answer.Warnings, query.Get("query"))
	}
	return nil
}

// sample is one series of the answer to an instant query.
type sample struct {
	Metric    map[string]string
	Value     [2]any // time, value
	Histogram []any  // of a native histogram
}

// query returns the answer to a query that is not a scalar.
func (s *server) query(t *testing.T, expr string) []sample {
	t.Helper()
	var data struct{ Result []sample }
	s.get(t, "query", url.Values{"query": {expr}}, &data)
	return data.Result
}

// by returns the values of a query by those of the labels, joined.
func (s *server) by(t *testing.T, expr string, labels ...string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, r := range s.query(t, expr) {
		var key []string
		for _, l := range labels {
			key = append(key, r.Metric[l])
		}
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		values[strings.Join(key, " ")] = v
	}
	return values
}

// wait asks until the query, which has one result at most, has the value.
func (s *server) wait(t *testing.T, expr string, want float64) {
	t.Helper()
	var got map[string]float64
	for until := time.Now().Add(patient); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if got = s.by(t, expr); got[""] == want && len(got) == 1 {
			return
		}
	}
	t.Fatalf("%s: %v, want %v", expr, got[""], want)
}
