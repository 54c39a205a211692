package outbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sandboxd/sandboxd/capabilities/store"
)

// State is where a message is.
type State string

// The states of a message. The last two are final.
const (
	StatePending   State = "pending"
	StateDelivered State = "delivered"
	StateGivenUp   State = "given-up"
)

// recordVersion is the layout of records that is written and read.
const recordVersion = 1

// Record is what the store keeps of a message.
type Record struct {
	Message  Message   `json:"message"` // without its body once it was delivered
	Bytes    int64     `json:"bytes"`   // of the body
	CallID   string    `json:"callId"`
	Tool     string    `json:"tool"`
	State    State     `json:"state"`
	Attempts int       `json:"attempts"`
	Created  time.Time `json:"created"`
	First    time.Time `json:"first,omitzero"` // attempt
	Next     time.Time `json:"next,omitzero"`  // while it is pending: not before
	Done     time.Time `json:"done,omitzero"`  // when it became final
	// Expires is when a final record is forgotten, and its key with it.
	Expires   time.Time `json:"expires,omitzero"`
	LastError string    `json:"lastError,omitempty"`
	Lease     *Lease    `json:"lease,omitempty"`
}

// Lease is the claim of one process to deliver a message, until it expires.
type Lease struct {
	Owner   string    `json:"owner"`
	Expires time.Time `json:"expires"`
}

// versioned is a record as it is stored.
type versioned struct {
	Version int `json:"version"`
	Record
}

// Encode returns the record as a value of the store.
func (r Record) Encode() ([]byte, error) {
	return json.Marshal(versioned{recordVersion, r})
}

// Decode reads a record. One of another layout, in no known state or without
// host or key is an error.
func Decode(value []byte) (Record, error) {
	var v versioned
	if err := json.Unmarshal(value, &v); err != nil {
		return Record{}, fmt.Errorf("message: %w", err)
	}
	if v.Version != recordVersion {
		return Record{}, fmt.Errorf("message: layout %d: unknown", v.Version)
	}
	switch v.State {
	case StatePending, StateDelivered, StateGivenUp:
	default:
		return Record{}, fmt.Errorf("message: state %q: unknown", v.State)
	}
	if err := v.Message.check(); err != nil || v.Message.Key == "" {
		return Record{}, fmt.Errorf("message: %w", ErrMessage)
	}
	return v.Record, nil
}

// Due returns when a pending message may be tried: not before its time, and not
// while another process has it.
func (r Record) Due() time.Time {
	if r.Lease != nil && r.Lease.Expires.After(r.Next) {
		return r.Lease.Expires
	}
	return r.Next
}

// Writes returns what keeps the record in a space: itself and, while it is
// pending, its place in the queue.
func (r Record) Writes(s store.Space) ([]store.Write, error) {
	value, err := r.Encode()
	if err != nil {
		return nil, err
	}
	record := store.Write{Key: Key(s, r.Message.Host, r.Message.Key), Value: value, Expires: r.Expires}
	queue := store.Write{Key: queueKey(s, r.Message.Host, r.Message.Key)}
	if r.State == StatePending {
		queue.Value = []byte(r.Due().UTC().Format(time.RFC3339Nano) + " " + r.Created.UTC().Format(time.RFC3339Nano))
	} else {
		queue.Delete = true
	}
	return []store.Write{record, queue}, nil
}

// Key returns the key of a message in the store.
func Key(s store.Space, host, key string) store.Key {
	return store.Key{Space: s, Name: host + "\x00" + key}
}

// queueKey returns the key of a pending message in the queue, which comes before
// all hosts: whoever looks for pending ones reads no others.
func queueKey(s store.Space, host, key string) store.Key {
	return store.Key{Space: s, Name: "\x00" + host + "\x00" + key}
}

// Queued is a pending message in the queue.
type Queued struct {
	Host, Key    string
	Due, Created time.Time
}

// queued reads an entry of the queue.
func queued(e store.Entry) (Queued, error) {
	host, key, ok := strings.Cut(strings.TrimPrefix(e.Name, "\x00"), "\x00")
	first, second, _ := strings.Cut(string(e.Value), " ")
	due, err := time.Parse(time.RFC3339Nano, first)
	created, cerr := time.Parse(time.RFC3339Nano, second)
	if !ok || err != nil || cerr != nil || !strings.HasPrefix(e.Name, "\x00") {
		return Queued{}, fmt.Errorf("message %q: not as the queue has them", e.Name)
	}
	return Queued{host, key, due, created}, nil
}
