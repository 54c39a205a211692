package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sandboxd/sandboxd/bench/peers/measure"
)

// serverSpec is a server as it is started.
type serverSpec struct {
	row     string   // what its rows are called
	command []string // program and arguments
	env     []string
	http    bool
	ready   *regexp.Regexp // over HTTP: the line of standard error that says so; a group is the URL
	url     string         // over HTTP, where that line does not name it
	path    string         // over HTTP: added to the URL
	health  string         // over HTTP: a path that answers 200 once calls are taken; empty: from the start

	root    string // where the files are, as the server's tools name it
	echoKey string // the argument of echo
}

// server is one that runs, with a client.
type server struct {
	spec    serverSpec
	session *mcp.ClientSession
	command *exec.Cmd
	origin  string // over HTTP: the URL that it said
	edits   [mostCallers]int
	stop    func() error
}

// start starts a server and connects a client of that protocol version. The
// caller closes it.
func (l *lab) start(ctx context.Context, s serverSpec, protocol string) (*server, error) {
	log, err := os.OpenFile(l.path("servers.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	command := exec.Command(s.command[0], s.command[1:]...)
	command.Env = append(os.Environ(), s.env...)
	running := &server{spec: s, command: command}
	var transport mcp.Transport
	if s.http {
		transport, err = running.listen(ctx, log)
	} else {
		command.Stderr = log
		transport = &mcp.CommandTransport{Command: command, TerminateDuration: 2 * time.Second}
		running.stop = log.Close
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.row, err), log.Close())
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "peers", Version: "1"}, nil)
	running.session, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.row, err), running.stop())
	}
	if got := running.session.InitializeResult().ProtocolVersion; got != protocol {
		return nil, errors.Join(&missingError{s.row + " of version " + protocol, "it speaks " + got}, running.close())
	}
	return running, nil
}

// listen starts a server of HTTP and waits until it says that it is ready.
func (s *server) listen(ctx context.Context, log io.WriteCloser) (mcp.Transport, error) {
	stderr, err := s.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	found, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			fmt.Fprintln(log, lines.Text())
			if m := s.spec.ready.FindStringSubmatch(lines.Text()); m != nil {
				select {
				case found <- m[len(m)-1]:
				default:
				}
			}
		}
	}()
	s.stop = func() error {
		err := s.command.Process.Signal(syscall.SIGTERM)
		<-ended
		if exit, ok := errors.AsType[*exec.ExitError](s.command.Wait()); ok && exit.Exited() && exit.ExitCode() != 0 {
			err = errors.Join(err, fmt.Errorf("%s: %w", s.spec.row, exit))
		}
		return errors.Join(err, log.Close())
	}
	endpoint := s.spec.url
	select {
	case line := <-found:
		if endpoint == "" {
			endpoint = line
		}
	case <-ended:
		return nil, errors.Join(errors.New("it ended before it listened"), s.command.Wait())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), s.stop())
	}
	s.origin = endpoint
	endpoint += s.spec.path
	if err := s.healthy(ctx, endpoint); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxIdleConns: 64}}
	return &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: client, DisableStandaloneSSE: true, MaxRetries: -1}, nil
}

// healthy waits until the server takes calls.
func (s *server) healthy(ctx context.Context, endpoint string) error {
	if s.spec.health == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	u.Path = s.spec.health
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode == http.StatusOK {
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *server) close() error {
	// A server that does not end by itself is stopped, which is no fault of the run.
	if err := s.session.Close(); err != nil && !strings.Contains(err.Error(), "signal: terminated") {
		return errors.Join(fmt.Errorf("%s: %w", s.spec.row, err), s.stop())
	}
	return s.stop()
}

// cpu returns the processor time of the server and of what it started.
func (s *server) cpu() (time.Duration, error) { return measure.Tree(s.command.Process.Pid) }

// call makes one call and returns the text of the answer.
func (s *server) call(ctx context.Context, tool string, arguments any) (string, error) {
	r, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			b.WriteString(t.Text)
		}
	}
	if r.IsError {
		return "", fmt.Errorf("%s answers %.200q", tool, b.String())
	}
	return b.String(), nil
}
